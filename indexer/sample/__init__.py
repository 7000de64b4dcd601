"""An invented catalogue to try the service with; every shop, person, provider and code in it is made up.

Some of its shops are under review or removed on purpose, so that a leak of one gate shows at once (V1).
"""
