"""The service with bounds to slow clients that a test can wait for: a second."""

from service.server.http_server import HttpProtocol
from shop_directory.command_line import main

if __name__ == "__main__":
    HttpProtocol.receive_seconds = HttpProtocol.send_seconds = 1.0
    main()
