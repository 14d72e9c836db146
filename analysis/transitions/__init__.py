"""How scores and shares of passing seeds rise with D_K."""
