// Command connect does on the network what programs in images without a libc do:
// it connects to an address, or answers on a port.
package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"
)

func main() {
	if err := run(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(what, address string) error {
	if what == "to" {
		conn, err := net.DialTimeout("tcp", address, 20*time.Second)
		if err != nil {
			return err
		}
		// Inside a sandbox every connection is accepted; a refused one says nothing.
		said, err := io.ReadAll(conn)
		if len(said) == 0 {
			return errors.Join(errors.New("nothing came"), err, conn.Close())
		}
		return conn.Close()
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	for {
		conn, err := listener.Accept()
		if err != nil {
			return err
		}
		_, _ = fmt.Fprint(conn, "answered\n") // the client may have gone
		_ = conn.Close()
	}
}
