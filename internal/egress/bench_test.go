package egress_test

import (
	"io"
	"net"
	"runtime"
	"testing"

	"github.com/litterbox-sandbox/litterbox/internal/egress"
)

// BenchmarkDecide is one verdict with a list of usual length.
func BenchmarkDecide(b *testing.B) {
	p := policy(b, "a.example; b.example; *.c.example; d.example:22; 10.1.2.3:5432; e.example; f.example; g.example; *.h.example; z.example", "telemetry.example")
	target := at(host("z.example", 443, "https"), internet)
	for b.Loop() {
		if !p.Decide(target).Allowed {
			b.Fatal("denied")
		}
	}
}

// BenchmarkConnection opens a connection, sends one byte there and back and
// closes it: through the proxy, and straight to the server.
func BenchmarkConnection(b *testing.B) {
	w := newWorld(b, egress.Options{}, "a.example:7")
	w.host("a.example", internet)
	w.serve(internet+":7", echo)
	one := []byte{1}
	for name, open := range map[string]func() net.Conn{
		"policy": func() net.Conn { return w.openName("a.example", 7) },
		"direct": func() net.Conn {
			c, err := net.Dial("tcp", w.servers[internet+":7"])
			if err != nil {
				b.Fatal(err)
			}
			return c
		},
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				c := open()
				if _, err := c.Write(one); err != nil {
					b.Fatal(err)
				}
				if _, err := io.ReadFull(c, one); err != nil {
					b.Fatal(err)
				}
				_ = c.Close()
			}
		})
	}
}

// BenchmarkThroughput sends one stream through the proxy.
func BenchmarkThroughput(b *testing.B) {
	w := newWorld(b, egress.Options{}, "a.example:7")
	w.host("a.example", internet)
	w.serve(internet+":7", func(c *net.TCPConn) { _, _ = io.Copy(io.Discard, c) })
	c := w.openName("a.example", 7)
	data := make([]byte, 1<<20)
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		if _, err := c.Write(data); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkIdle shows what a waiting connection costs this process.
func BenchmarkIdle(b *testing.B) {
	w := newWorld(b, egress.Options{}, "a.example:7")
	w.host("a.example", internet)
	w.serve(internet+":7", echo)
	one := []byte{1}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	const opened = 1000
	for range opened {
		c := w.openName("a.example", 7)
		if _, err := c.Write(one); err != nil {
			b.Fatal(err)
		}
		if _, err := io.ReadFull(c, one); err != nil {
			b.Fatal(err)
		}
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	used := after.HeapInuse + after.StackInuse - before.HeapInuse - before.StackInuse
	for b.Loop() {
		runtime.KeepAlive(w)
	}
	b.ReportMetric(0, "ns/op") // of no interest
	b.ReportMetric(float64(used)/opened, "bytes/connection")
}
