package main

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"
)

// loadWord makes this program the client of a measurement: it then runs in a
// sandbox, or in what it is compared with.
const loadWord = "load"

// The ports of the server that the client loads.
const (
	echoPort  = 9001 // sends back what it gets
	giverPort = 9002 // gives volume bytes
	takerPort = 9003 // takes volume bytes and says so
)

// volume is the number of bytes moved to measure throughput.
const volume = 1 << 30

// load is what the client measures: medians and rates.
type load struct {
	Connect, Request, RequestTLS, Again, AgainTLS time.Duration
	Down, Up                                      float64 // bits per second
	Crowd                                         time.Duration
	Crowded                                       int // connections open at once
}

// runLoad is the client: load NAME ADDRESS PARTS. It looks the name up if
// there is no address, once.
func runLoad(args []string) error {
	name, address := args[0], args[1]
	if address == "" {
		found, err := net.LookupHost(name)
		if err != nil {
			return err
		}
		address = found[slices.IndexFunc(found, func(one string) bool { return net.ParseIP(one).To4() != nil })]
	}
	c := client{name: name, address: address}
	var l load
	if args[2] == "crowd" {
		return c.crowd(&l)
	}
	// A part that fails is missing from the report; the others are not.
	failed := func(what string, err error) {
		if err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", what, err)
		}
	}
	for _, part := range []struct {
		what  string
		into  *time.Duration
		count int
		step  func() error
	}{
		{"connections", &l.Connect, 400, c.connect},
		{"requests", &l.Request, 300, c.request("http", false)},
		{"requests over TLS", &l.RequestTLS, 150, c.request("https", false)},
		{"requests on one connection", &l.Again, 1000, c.request("http", true)},
		{"requests on one connection over TLS", &l.AgainTLS, 1000, c.request("https", true)},
	} {
		took, err := median(part.count, part.step)
		*part.into = took
		failed(part.what, err)
	}
	var err error
	l.Down, err = c.move(giverPort)
	failed("the stream in", err)
	l.Up, err = c.move(takerPort)
	failed("the stream out", err)
	return json.NewEncoder(os.Stdout).Encode(l)
}

type client struct{ name, address string }

func (c client) dial(port int) (net.Conn, error) {
	return net.DialTimeout("tcp", net.JoinHostPort(c.address, strconv.Itoa(port)), time.Minute)
}

func median(count int, step func() error) (time.Duration, error) {
	all := make([]time.Duration, count)
	for i := range all {
		start := time.Now()
		if err := step(); err != nil {
			return 0, err
		}
		all[i] = time.Since(start)
	}
	slices.Sort(all)
	return all[count/2], nil
}

// connect makes a connection and sends one byte there and back.
func (c client) connect() error {
	conn, err := c.dial(echoPort)
	if err != nil {
		return err
	}
	defer conn.Close()
	return echo(conn)
}

func echo(conn net.Conn) error {
	one := []byte{'x'}
	if _, err := conn.Write(one); err != nil {
		return err
	}
	_, err := io.ReadFull(conn, one)
	return err
}

// request asks for a small page, on a new connection or on a kept one.
func (c client) request(scheme string, keep bool) func() error {
	transport := &http.Transport{
		DisableKeepAlives: !keep,
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true}, // the measurement's own server
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			_, port, err := net.SplitHostPort(addr)
			if err != nil {
				return nil, err
			}
			var d net.Dialer
			return d.DialContext(ctx, network, net.JoinHostPort(c.address, port))
		},
	}
	web := &http.Client{Transport: transport}
	return func() error {
		answer, err := web.Get(scheme + "://" + c.name + "/")
		if err != nil {
			return err
		}
		_, err = io.Copy(io.Discard, answer.Body)
		return join(err, answer.Body.Close())
	}
}

func join(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// move receives or sends volume bytes, twice, and returns the better rate.
func (c client) move(port int) (best float64, err error) {
	for range 2 {
		conn, err := c.dial(port)
		if err != nil {
			return 0, err
		}
		start := time.Now()
		if port == giverPort {
			_, err = io.CopyN(io.Discard, onlyReader{conn}, volume)
		} else if err = give(conn); err == nil {
			_, err = io.ReadFull(conn, make([]byte, 1))
		}
		took := time.Since(start)
		if err = join(err, conn.Close()); err != nil {
			return 0, err
		}
		best = max(best, volume*8/took.Seconds())
	}
	return best, nil
}

// onlyReader hides everything that io.Copy could use instead of reading.
type onlyReader struct{ io.Reader }

func give(conn net.Conn) error {
	data := make([]byte, 256<<10)
	for range volume / len(data) {
		if _, err := conn.Write(data); err != nil {
			return err
		}
	}
	return nil
}

// crowd opens a thousand connections at once, uses each, and holds them until
// its input ends.
func (c client) crowd(l *load) error {
	start := time.Now()
	var wait sync.WaitGroup
	var mu sync.Mutex
	var held []net.Conn
	var failed error
	for range crowdSize {
		wait.Go(func() {
			conn, err := c.dial(echoPort)
			if err == nil {
				err = echo(conn)
			}
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				failed = err
				return
			}
			held = append(held, conn)
		})
	}
	wait.Wait()
	l.Crowd, l.Crowded = time.Since(start), len(held)
	if failed != nil {
		fmt.Fprintln(os.Stderr, "a connection failed:", failed)
	}
	if err := json.NewEncoder(os.Stdout).Encode(l); err != nil {
		return err
	}
	_, err := io.Copy(io.Discard, os.Stdin)
	for _, conn := range held {
		err = join(err, conn.Close())
	}
	os.Exit(0) // said already
	return err
}

// crowdSize is how many connections are open at once.
const crowdSize = 1000
