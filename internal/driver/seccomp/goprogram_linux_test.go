package seccomp_test

import (
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"sync"
)

// goProgram does what a Go program does: threads, children, epoll, sockets,
// files below a root.
func goProgram() int {
	// Under the filter as a whole: execute once more.
	if len(os.Args) == 1 {
		cmd := exec.Command("/proc/self/exe", "again")
		cmd.Env = append(environment(), childVariable+"=go-free")
		out, err := cmd.CombinedOutput()
		if err != nil {
			fmt.Fprintf(os.Stderr, "%v: %s", err, out)
			return 1
		}
		return 0
	}
	if err := work(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func work() error {
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			runtime.LockOSThread()
			_ = exec.Command("true").Run()
		})
	}
	group.Wait()
	if err := exec.Command("true").Run(); err != nil {
		return err
	}
	for _, network := range []struct{ name, address string }{{"tcp", "127.0.0.1:0"}, {"unix", "socket"}} {
		listener, err := net.Listen(network.name, network.address)
		if err != nil {
			return err
		}
		go func() {
			if conn, err := listener.Accept(); err == nil {
				_, _ = conn.Write([]byte("x"))
				_ = conn.Close()
			}
		}()
		conn, err := net.Dial(network.name, listener.Addr().String())
		if err != nil {
			return err
		}
		if got, err := io.ReadAll(conn); err != nil || string(got) != "x" {
			return fmt.Errorf("read %q: %w", got, err)
		}
	}
	if _, err := net.Interfaces(); err != nil {
		return err
	}
	root, err := os.OpenRoot(".")
	if err != nil {
		return err
	}
	if err := root.MkdirAll("a/b", 0o755); err != nil {
		return err
	}
	return root.WriteFile("a/b/c", []byte("x"), 0o644)
}
