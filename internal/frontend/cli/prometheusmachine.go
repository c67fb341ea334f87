package cli

import "github.com/litterbox-sandbox/litterbox/internal/engine"

// exposeMachines writes what hypervisors say about the machines of sandboxes. each
// writes a family.
func exposeMachines(samples []engine.Sample, each func(name, kind, help string, write func(s engine.Sample, labels []string)), x *exposition) {
	has := false
	for _, s := range samples {
		has = has || s.Machine != nil
	}
	if !has {
		return
	}
	each("litterbox_machine_state", "gauge", "One for the virtual machine of each sandbox, with its state and the hypervisor's reason.", func(s engine.Sample, labels []string) {
		if s.Machine != nil {
			x.sample("litterbox_machine_state", 1, append(labels, "machine", s.Machine.Name, "state", s.Machine.State, "reason", s.Machine.Reason)...)
		}
	})
	for _, g := range []struct {
		name, kind, help string
		value            func(*engine.Machinery) float64
	}{
		{"litterbox_machine_cpu_seconds_total", "counter", "Processor time that the hypervisor has spent on the machine.", func(m *engine.Machinery) float64 { return seconds(m.CPU) }},
		{"litterbox_machine_memory_bytes", "gauge", "Memory of the host that the machine takes.", func(m *engine.Machinery) float64 { return float64(m.Memory) }},
		{"litterbox_machine_balloon_bytes", "gauge", "Memory that the machine's balloon leaves to it.", func(m *engine.Machinery) float64 { return float64(m.Balloon) }},
		{"litterbox_machine_used_bytes", "gauge", "Memory in use by the guest's own count, without what it could drop.", func(m *engine.Machinery) float64 { return float64(m.Used) }},
		{"litterbox_machine_block_read_bytes_total", "counter", "Bytes read from the disk of the machine.", func(m *engine.Machinery) float64 { return float64(m.Read) }},
		{"litterbox_machine_block_written_bytes_total", "counter", "Bytes written to the disk of the machine.", func(m *engine.Machinery) float64 { return float64(m.Written) }},
		{"litterbox_machine_agent_up", "gauge", "1 when the agent in a running machine answers, 0 when not.", func(m *engine.Machinery) float64 {
			switch {
			case m.Agent == nil:
				return -1
			case *m.Agent:
				return 1
			}
			return 0
		}},
	} {
		each(g.name, g.kind, g.help, func(s engine.Sample, labels []string) {
			if s.Machine != nil && g.value(s.Machine) >= 0 {
				x.sample(g.name, g.value(s.Machine), append(labels, "machine", s.Machine.Name)...)
			}
		})
	}
}
