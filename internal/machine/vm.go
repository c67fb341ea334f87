package machine

import "time"

// VM is a virtual machine that litterbox makes and starts by itself.
type VM struct {
	Name         string `json:"name"`
	Driver       string `json:"driver"`
	Sandbox      string `json:"sandbox,omitempty"` // the one that it is for, if it is for one
	State        string `json:"state"`             // VMMissing, or a state of the program that runs it, in small letters
	Type         string `json:"type,omitempty"`
	Architecture string `json:"architecture,omitempty"`
	CPUs         int    `json:"cpus"`
	Memory       int64  `json:"memory_bytes"`
	Disk         int64  `json:"disk_bytes"`
	Version      string `json:"version,omitempty"` // of the program that made it
	Dir          string `json:"dir,omitempty"`
	Trouble      string `json:"trouble,omitempty"` // why it does not run
	// Changed is set when the configuration differs from the one it was made with.
	Changed bool `json:"changed"`
}

// The states of a VM that litterbox knows itself.
const (
	VMMissing = "missing"
	VMRunning = "running"
	VMStopped = "stopped"
)

// VMSettings are what a VM is given. The driver chooses whatever is not set.
type VMSettings struct {
	CPUs     int           `json:"cpus,omitempty"`
	Memory   string        `json:"memory,omitempty"`
	Disk     string        `json:"disk,omitempty"`
	Type     string        `json:"type,omitempty"`
	Image    string        `json:"image,omitempty"`
	IdleStop time.Duration `json:"idle_stop,omitempty"` // 0 and less: never
}
