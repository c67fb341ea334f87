// A development server without dependencies: pages, a websocket that answers,
// and raw TCP that answers once its client has finished.
const http = require("http"), net = require("net"), crypto = require("crypto"), fs = require("fs");

const page = (next) => `<!doctype html><title>served</title><script>
const before = document.cookie;
document.cookie = "seen=" + location.hostname;
const socket = new WebSocket("ws://" + location.host + "/socket");
socket.onopen = () => socket.send("ping from the page");
socket.onmessage = (message) => {
  fetch("/report", { method: "POST", body: JSON.stringify({ said: message.data, before, at: location.hostname }) })
    .then(() => { if (${JSON.stringify(next)}) location = ${JSON.stringify(next)}; });
};
</script>`;

const server = http.createServer((request, response) => {
  const url = new URL(request.url, "http://x");
  if (url.pathname === "/report") {
    let body = "";
    request.on("data", (chunk) => (body += chunk)).on("end", () => {
      console.log("report " + body);
      response.end("ok");
    });
  } else if (url.pathname === "/slow") {
    setTimeout(() => response.end("slow " + url.search), 100);
  } else if (url.pathname === "/large") {
    response.end(Buffer.alloc(32 << 20, "x"));
  } else {
    response.setHeader("content-type", "text/html");
    response.end(page(url.searchParams.get("next") || ""));
  }
});

// RFC 6455, for short text frames.
server.on("upgrade", (request, socket) => {
  const accept = crypto.createHash("sha1")
    .update(request.headers["sec-websocket-key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest("base64");
  socket.write("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: " + accept + "\r\n\r\n");
  socket.on("error", () => {});
  socket.on("data", (frame) => {
    if ((frame[0] & 15) !== 1) return socket.end();
    const length = frame[1] & 127, mask = frame.subarray(2, 6), text = Buffer.from(frame.subarray(6, 6 + length));
    for (let i = 0; i < length; i++) text[i] ^= mask[i % 4];
    const answer = Buffer.from("pong: " + text);
    socket.write(Buffer.concat([Buffer.from([0x81, answer.length]), answer]));
  });
});

net.createServer({ allowHalfOpen: true }, (socket) => {
  let bytes = 0;
  socket.on("error", () => {});
  socket.on("data", (chunk) => (bytes += chunk.length));
  socket.on("end", () => socket.end("got " + bytes + "\n"));
}).listen(process.env.PORT_RAW, "127.0.0.1");

server.listen(process.env.PORT_WEB, "127.0.0.1", () => {
  console.log("listening on " + process.env.PORT_WEB);
  fs.writeFileSync("/tmp/ready", "");
});
