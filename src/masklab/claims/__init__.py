"""Claims: sentences of a paper, each tested on scores.

`CLAIMS` names the lists per study; importing this package imports neither numpy nor pandas. To add some:
write a list of `masklab.claims.spec.Claim` and a line here.
"""

CLAIMS = {
    "dh": "masklab.claims.dh",
    "implicit-bias": "masklab.claims.implicit_bias",
    "mae": "masklab.claims.mae",
}
