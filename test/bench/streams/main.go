// Streams sends and takes a fixed number of bytes over one connection: its server is
// run in a sandbox or outside, its client on the other side.
package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"
)

const (
	size  = 256 << 20 // bytes of each stream
	block = 1 << 20   // bytes written at once
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "streams:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	switch {
	case len(args) == 1 && args[0] == "serve": // as a service of a sandbox
		return serve("127.0.0.1:" + os.Getenv("PORT_STREAMS"))
	case len(args) == 2 && args[0] == "serve":
		return serve(args[1])
	case len(args) == 2 && (args[0] == "down" || args[0] == "up"):
		took, err := stream(args[0], args[1])
		if err == nil {
			fmt.Println(took.Nanoseconds())
		}
		return err
	}
	return errors.New("usage: streams serve [ADDRESS]|down ADDRESS|up ADDRESS")
}

// serve answers "d" with the bytes, and "u" with one byte when they have come.
func serve(address string) error {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	fmt.Println(listener.Addr())
	for {
		conn, err := listener.Accept()
		if err != nil {
			return err
		}
		go func() {
			defer conn.Close()
			_ = answer(conn) // its client reports what is missing
		}()
	}
}

func answer(conn net.Conn) error {
	want := make([]byte, 1)
	if _, err := io.ReadFull(conn, want); err != nil {
		return err
	}
	if want[0] == 'd' {
		return send(conn)
	}
	if err := take(conn); err != nil {
		return err
	}
	_, err := conn.Write(want)
	return err
}

// stream brings the bytes down or up, and returns how long that took, without the
// connection.
func stream(way, address string) (time.Duration, error) {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	began := time.Now()
	if _, err := conn.Write([]byte(way[:1])); err != nil {
		return 0, err
	}
	if way == "down" {
		err = take(conn)
	} else if err = send(conn); err == nil {
		_, err = io.ReadFull(conn, make([]byte, 1))
	}
	return time.Since(began), err
}

func send(conn net.Conn) error {
	data := make([]byte, block)
	for range size / block {
		if _, err := conn.Write(data); err != nil {
			return err
		}
	}
	return nil
}

// take reads the bytes, and never has the kernel splice them.
func take(conn net.Conn) error {
	_, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, io.LimitReader(conn, size), make([]byte, block))
	return err
}
