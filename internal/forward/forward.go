// Package forward brings servers of a sandbox to ports of this machine: which
// numbers they get (reserve.go), and the listeners and connections (serve.go).
//
// It moves bytes and understands none of them: the server inside decides what a
// forwarded port answers, and to which clients. The way to connect inside is
// passed in as a function.
//
// Start reading at [Open].
package forward

import (
	"strconv"

	"github.com/litterbox-sandbox/litterbox/internal/service"
)

// Port is one named port of a sandbox.
type Port struct {
	Name   string `json:"name"`
	Inside int    `json:"inside"`          // where the server inside listens; 0 until it is chosen
	Host   int    `json:"host"`            // where this machine listens; 0 until it is chosen
	Fixed  bool   `json:"fixed,omitempty"` // Inside was configured
}

// Record is what a sandbox remembers about its ports on disk.
type Record struct {
	Version int    `json:"version"`
	Listen  string `json:"listen"` // address of this machine; empty means loopback
	Ports   []Port `json:"ports"`
}

// Update takes over the present configuration, and keeps the numbers of earlier
// ports.
func (r *Record) Update(listen string, configured []Port) {
	before := r.Ports
	r.Listen, r.Ports = listen, nil
	for _, port := range configured {
		for _, old := range before {
			if old.Name == port.Name {
				port.Host = old.Host
			}
		}
		r.Ports = append(r.Ports, port)
	}
}

// Env returns the variables that tell programs inside about the ports.
func (r Record) Env() []string {
	var env []string
	for _, port := range r.Ports {
		name := service.PortVariable(port.Name)
		env = append(env, name+"="+strconv.Itoa(port.Inside), "HOST_"+name+"="+strconv.Itoa(port.Host))
	}
	return env
}
