"""
The shared idea: how deciding is put into values.

Nothing here does anything. A world goes in, a plan comes out, and what lies
between is ordinary functions.
"""
