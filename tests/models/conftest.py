"""Code of checkpoint folders is cached in a temporary folder and not in the home of whoever runs the tests."""

import os
import tempfile

os.environ.setdefault("HF_MODULES_CACHE", tempfile.mkdtemp(prefix="masklab-tests-"))
