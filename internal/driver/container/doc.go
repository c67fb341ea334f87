// Package container is the driver of places in containers of Docker and Podman. A
// container is a machine (package driver/remote): an outpost in it makes places
// through the namespace driver, so that a program inside meets the walls of any
// place first, and those of the container behind them.
//
// One container serves all sandboxes of a state directory that have the same
// image. It has no network, no capabilities, a read-only root and one volume, with
// our program and the outpost's state. It is made with its first place, starts
// again on demand, and ends by itself when nothing has run in it for a while.
//
// This package finds engines and defines the orders to them ([Order]). It links no
// client library: an [Engine] carries orders out, in this process (package moby) or
// in a process of the full program ([Bridge]). Start reading at [New].
package container
