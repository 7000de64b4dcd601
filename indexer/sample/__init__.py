"""An invented catalogue for trying the service; every shop, person, provider and code in it is made up.

Some of its shops are under review or removed on purpose, so that tests can detect a leak of them (V1).
"""
