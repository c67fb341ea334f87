package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// farHost is a host that ssh reaches over a delayed link: this machine, with another
// home. Its bench has the ssh that knows it, by the name far.
type farHost struct {
	*bench
	home     string
	ssh      string // the program
	link     *delayed
	listener net.Listener
	served   sync.WaitGroup
}

// farHost begins one. It starts OpenSSH's server for each connection.
func (b *bench) farHost() (host *farHost, err error) {
	who, err := user.Current()
	if err != nil {
		return nil, err
	}
	ssh, err := exec.LookPath("ssh")
	if err != nil {
		return nil, err
	}
	at := *b
	host = &farHost{bench: &at}
	defer func() {
		if err != nil {
			err = errors.Join(err, host.end())
		}
	}()
	if host.home, err = os.MkdirTemp("", "bench-"); err != nil { // a short path: sockets are below it
		return host, err
	}
	server, identity, err := b.server("far", "PasswordAuthentication no", "PidFile none", "SetEnv HOME="+host.home+" XDG_STATE_HOME="+host.home)
	if err != nil {
		return host, err
	}
	if host.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		return host, err
	}
	host.served.Go(func() { host.serve(server) })
	if host.link, err = delay(host.listener.Addr().String()); err != nil {
		return host, err
	}
	bin, config := filepath.Join(b.dir, "far", "bin"), filepath.Join(b.dir, "far", "client")
	host.ssh = filepath.Join(bin, "ssh")
	at.env = append(b.env[:len(b.env):len(b.env)], "PATH="+bin+":"+os.Getenv("PATH"))
	text := fmt.Sprintf("Host far\n  HostName 127.0.0.1\n  Port %d\n  User %s", host.link.port(), who.Username) + clientText(identity)
	return host, errors.Join(
		os.Mkdir(bin, 0o755),
		os.WriteFile(config, []byte(text), 0o600),
		os.WriteFile(host.ssh, []byte("#!/bin/sh\nexec "+ssh+" -F "+config+` "$@"`+"\n"), 0o755),
	)
}

// serve starts a server for each connection, as inetd does.
func (h *farHost) serve(server []string) {
	for {
		conn, err := h.listener.Accept()
		if err != nil {
			return
		}
		file, err := conn.(*net.TCPConn).File()
		_ = conn.Close() // the file is another descriptor
		if err != nil {
			continue // its client fails
		}
		cmd := exec.Command(server[0], server[1:]...)
		cmd.Stdin, cmd.Stdout = file, file
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		err = cmd.Start()
		_ = file.Close()
		if err == nil {
			h.served.Go(func() { _ = cmd.Wait() }) // it ends with its client
		}
	}
}

// add makes the host known to litterbox.
func (h *farHost) add() error {
	return h.command(h.dir, h.litterbox, "machine", "add", "far", "ssh://far")
}

// end deletes what is on the host, and the host.
func (h *farHost) end() (err error) {
	if h.link != nil {
		h.link.set(0)
		if listed, failed := h.output(h.dir, h.litterbox, "machine", "list", "--json"); failed == nil && strings.Contains(listed, `"far"`) {
			err = errors.Join(
				h.deleteAll(),
				h.command(h.dir, h.litterbox, "trash", "empty", "--all", "--yes"),
				h.command(h.dir, h.litterbox, "machine", "remove", "far"),
			)
		}
		err = errors.Join(err, h.link.Close())
	}
	if h.listener != nil {
		err = errors.Join(err, h.listener.Close())
		h.served.Wait()
	}
	return errors.Join(err, os.RemoveAll(h.home))
}

// tunnel is a tunnel of ssh to an address that is there, or from there to one here: in
// both cases it ends on this machine, which is the host.
func (h *farHost) tunnel(remote bool, address string) (string, func() error, error) {
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	near := free.Addr().String()
	flag := "-R"
	if remote {
		flag = "-L"
	}
	if err := free.Close(); err != nil {
		return "", nil, err
	}
	cmd := exec.Command(h.ssh, "-N", "-o", "ExitOnForwardFailure=yes", flag, near+":"+address, "far")
	cmd.Env = h.env
	if err := cmd.Start(); err != nil {
		return "", nil, err
	}
	end := func() error {
		err := cmd.Process.Kill()
		_ = cmd.Wait() // killed
		return err
	}
	for until := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		conn, err := net.Dial("tcp", near)
		if err == nil {
			return near, end, conn.Close()
		}
		if time.Now().After(until) {
			return "", nil, errors.Join(err, end())
		}
	}
}

// over sets the delay of the link, and returns how a row names it.
func (h *farHost) over(roundTrip time.Duration) string {
	h.link.set(roundTrip)
	return fmt.Sprintf("%d ms there and back", roundTrip.Milliseconds())
}
