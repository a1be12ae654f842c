"""What of each contract this machine and its engine can keep, and what is in the way.

Looks and tells: starts no server, fetches and hashes nothing, and writes nothing but the engine's facts, which every
command keeps. Imports nothing here, so that agenteval's own packages can be looked at where one is broken.
"""
