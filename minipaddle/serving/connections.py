"""Connections, each with a client that may send nothing, send slowly, or not read its answer.

Such a client costs a socket and no more. The head of a request has a limit of time and of bytes; so
has the time in which a client reads nothing of an answer. (For bodies see `app.Server.body`.) As
many connections as there are requests at the same time may be open, and a few more: then the one
that has waited longest for a head makes room, so that a new client is heard, however many others
are idle.
"""

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

HEAD = 2**16
"""The most bytes of the head of a request."""
RESERVE = 64
"""How many connections may wait for a head beyond those that are served."""


class Connection(HttpToolsProtocol):
    """limit: seconds for a head, and for a client that reads nothing; most: open connections"""

    def __init__(self, *args, limit: float, most: int, **more):
        super().__init__(*args, **more)
        self.limit, self.most = limit, most
        self.waits, self.since = False, 0.0  # whether it waits for a head, and since when
        self.head: int | None = None  # the bytes of the head that is being read
        self.timer, self.unread = None, 0  # of the answer, when the timer was set

    # ---- what uvicorn calls ------------------------------------------------------------------

    def connection_made(self, transport) -> None:
        super().connection_made(transport)
        self.wait()
        self.make_room()

    def connection_lost(self, error) -> None:
        self.stop_timer()
        super().connection_lost(error)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.head is not None:
            self.head += len(data)
            if self.head > HEAD and not self.transport.is_closing():
                self.send_400_response(f"The head of the request has more than {HEAD} bytes.")

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self.head = 0

    def on_headers_complete(self) -> None:
        self.head, self.waits = None, False
        if not self.flow.write_paused:  # then earlier answers are still to be read
            self.stop_timer()
        super().on_headers_complete()

    def on_response_complete(self) -> None:
        more = bool(self.pipeline)
        super().on_response_complete()
        if not more:
            self.wait()

    def pause_writing(self) -> None:
        super().pause_writing()
        self.start_timer()

    def resume_writing(self) -> None:
        super().resume_writing()
        if not self.waits:
            self.stop_timer()

    # ---- limits ------------------------------------------------------------------------------

    def wait(self) -> None:
        """From now on the client has some seconds to send a head."""
        self.waits, self.since = True, self.loop.time()
        self.start_timer()

    def start_timer(self) -> None:
        self.stop_timer()
        self.unread = self.transport.get_write_buffer_size()
        self.timer = self.loop.call_later(self.limit, self.give_up)

    def stop_timer(self) -> None:
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None

    def give_up(self) -> None:
        """Close the connection, unless its client has read a part of an answer meanwhile."""
        if self.transport.get_write_buffer_size() < self.unread:
            self.start_timer()
        else:
            self.transport.abort()

    def make_room(self) -> None:
        """If too many are open, close the one that has waited longest for a head."""
        if len(self.connections) <= self.most:
            return
        idle = [x for x in self.connections if x.waits and not x.transport.is_closing()]
        if len(idle) > RESERVE:
            min(idle, key=lambda each: each.since).transport.abort()
