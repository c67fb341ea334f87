package attacks_test

import (
	"path"
	"strings"
	"testing"

	"github.com/litterbox-sandbox/litterbox/test/program"
)

// agreementAttacks look up one host and ask it for another, at a server that
// would serve both.
func agreementAttacks() []attack {
	front := func(tries ...string) func(*testing.T, *program.Host) scene {
		return func(t *testing.T, _ *program.Host) scene {
			a := &target{}
			h := outside.Host(strings.ReplaceAll(strings.ToLower(path.Base(t.Name())), "_", "-") + ".good.example")
			a.fronts(t, h)
			s := scene{Arrived: a.arrived, Allow: []string{h.Name + ":80", h.Name + ":443", "http://" + h.Name + ":8080"}}
			for _, try := range tries {
				s.Tries = append(s.Tries, strings.ReplaceAll(try, "GOOD", h.Name))
			}
			return s
		}
	}
	const end = `\r\n\r\n`
	return []attack{
		{
			Name: "host",
			Set: front(
				run("tcp", "GOOD", "80", `GET / HTTP/1.1\r\nHost: evil.example`+end),
				run("tcp", "GOOD", "80", `GET http://evil.example/ HTTP/1.1\r\nHost: GOOD`+end),
				run("tcp", "GOOD", "80", `GET http://evil.example/ HTTP/1.1\r\nHost: evil.example`+end),
				run("tcp", "GOOD", "80", `GET http://GOOD@evil.example/ HTTP/1.1\r\nHost: GOOD`+end),
				run("tcp", "GOOD", "80", `GET / HTTP/1.1\r\nHost: GOOD@evil.example`+end),
				run("tcp", "GOOD", "80", `GET / HTTP/1.1\r\nHost: GOOD\r\nHost: evil.example`+end),
				run("tcp", "GOOD", "80", `GET / HTTP/1.1\r\nHost: GOOD,evil.example`+end),
				run("tcp", "GOOD", "80", `GET / HTTP/1.1\r\nHost: GOOD:80:evil.example`+end),
				run("tcp", "GOOD", "80", `GET / HTTP/1.1\r\nHost: evil.example\x00.GOOD`+end),
				run("tcp", "GOOD", "80", `GET / HTTP/1.1\r\nHost : evil.example\r\nHost: GOOD`+end),
				run("tcp", "GOOD", "80", `GET / HTTP/1.1\r\nX: y\r\n Host: evil.example\r\nHost: GOOD`+end),
				run("tcp", "GOOD", "80", `GET / HTTP/1.1\nHost: evil.example\n\n`),
				run("tcp", "GOOD", "80", `CONNECT evil.example:443 HTTP/1.1\r\nHost: evil.example:443`+end),
				run("tcp", "GOOD", "80", `CONNECT evil.example:443 HTTP/1.1\r\nHost: GOOD`+end),
				run("tcp", "GOOD", "80", `connect evil.example:443 HTTP/1.1\r\nHost: GOOD`+end),
				"curl -sS -H 'Host: evil.example' http://GOOD/",
				"curl -sS -x http://GOOD:80 http://evil.example/",
				"curl -sS -p -x http://GOOD:80 https://evil.example/",
			),
		},
		{
			Name: "later request",
			Set: front(
				run("tcp", "GOOD", "80", `GET / HTTP/1.1\r\nHost: GOOD`+end, `GET / HTTP/1.1\r\nHost: evil.example`+end),
				run("tcp", "GOOD", "80", `GET / HTTP/1.1\r\nHost: GOOD`+end+`GET / HTTP/1.1\r\nHost: evil.example`+end),
				run("tcp", "GOOD", "80", `POST / HTTP/1.1\r\nHost: GOOD\r\nContent-Length: 0\r\nContent-Length: 44`+end+`GET / HTTP/1.1\r\nHost: evil.example`+end),
				run("tcp", "GOOD", "80", `POST / HTTP/1.1\r\nHost: GOOD\r\nContent-Length: 4\r\nTransfer-Encoding: chunked`+end+`0`+end+`GET / HTTP/1.1\r\nHost: evil.example`+end),
				run("tcp", "GOOD", "80", `POST / HTTP/1.1\r\nHost: GOOD\r\nTransfer-Encoding: xchunked`+end+`0`+end+`GET / HTTP/1.1\r\nHost: evil.example`+end),
				run("tcp", "GOOD", "80", `POST / HTTP/1.1\r\nHost: GOOD\r\nTransfer-Encoding: chunked`+end+`1;a=\nb\r\nx\r\n0`+end+`GET / HTTP/1.1\r\nHost: evil.example`+end),
			),
		},
		{
			Name: "server name",
			Set: front(
				run("tls", "GOOD", "443", "evil.example", `GET / HTTP/1.1\r\nHost: x`+end),
				run("tls", "GOOD", "443", "GOOD.evil.example", `GET / HTTP/1.1\r\nHost: x`+end),
				run("tls", "GOOD", "443", "-", `GET / HTTP/1.1\r\nHost: x`+end),
				"curl -sSk --connect-to evil.example:443:GOOD:443 https://evil.example/",
			),
		},
		{
			Name: "authority of HTTP 2",
			Set: front(
				"curl -sS --http2-prior-knowledge -H 'Host: evil.example' http://GOOD:8080/",
				"curl -sS --http2-prior-knowledge --connect-to evil.example:8080:GOOD:8080 http://evil.example:8080/",
			),
		},
	}
}
