"""How both sides read, refuse and show settings; exit codes; how a cluster is reached. It imports neither side."""
