"""What figures and tables of all studies share: how they look, how they are written, and those that suit any study."""
