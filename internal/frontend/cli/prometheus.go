package cli

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/engine"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

// exposition writes metrics in the text format of Prometheus, version 0.0.4: a
// family of samples after the other, each with its type and help.
type exposition struct{ b strings.Builder }

func (x *exposition) family(name, kind, help string) {
	fmt.Fprintf(&x.b, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, kind)
}

// sample writes one value; labels are names and values in turn.
func (x *exposition) sample(name string, value float64, labels ...string) {
	x.b.WriteString(name)
	for i := 0; i+1 < len(labels); i += 2 {
		if i == 0 {
			x.b.WriteByte('{')
		} else {
			x.b.WriteByte(',')
		}
		// The format escapes exactly these three; names are litterbox's own.
		x.b.WriteString(labels[i] + `="` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(labels[i+1]) + `"`)
	}
	if len(labels) > 0 {
		x.b.WriteByte('}')
	}
	x.b.WriteString(" " + strconv.FormatFloat(value, 'g', -1, 64) + "\n")
}

// gauge is a measured value of one sandbox; negative ones were not measured.
type gauge struct {
	name, kind, help string
	value            func(engine.Metrics) float64
}

func gauges() []gauge {
	return []gauge{
		{"litterbox_sandbox_cpu_seconds_total", "counter", "Processor time used since the sandbox was started.", func(m engine.Metrics) float64 { return seconds(m.CPU) }},
		{"litterbox_sandbox_memory_bytes", "gauge", "Memory in use, without caches that the kernel can drop.", func(m engine.Metrics) float64 { return float64(m.Memory) }},
		{"litterbox_sandbox_processes", "gauge", "Processes inside.", func(m engine.Metrics) float64 { return float64(m.Processes) }},
		{"litterbox_sandbox_threads", "gauge", "Threads of all processes inside.", func(m engine.Metrics) float64 { return float64(m.Threads) }},
		{"litterbox_sandbox_uptime_seconds", "gauge", "Time since the sandbox was started.", func(m engine.Metrics) float64 { return seconds(m.Uptime) }},
		{"litterbox_sandbox_io_read_bytes_total", "counter", "Bytes read from block devices.", func(m engine.Metrics) float64 { return float64(m.Read) }},
		{"litterbox_sandbox_io_written_bytes_total", "counter", "Bytes written to block devices.", func(m engine.Metrics) float64 { return float64(m.Written) }},
		{"litterbox_sandbox_oom_kills_total", "counter", "Processes ended at the limit of memory.", func(m engine.Metrics) float64 { return float64(m.OOMKills) }},
		{"litterbox_sandbox_refused_forks_total", "counter", "Forks that failed at the limit of processes.", func(m engine.Metrics) float64 { return float64(m.RefusedPIDs) }},
	}
}

func seconds(d time.Duration) float64 {
	if d < 0 {
		return -1
	}
	return d.Seconds()
}

// prometheus writes the samples of all sandboxes at the moment now.
func prometheus(samples []engine.Sample, now time.Time) string {
	x := &exposition{}
	states := map[sandbox.State]int{}
	for _, s := range samples {
		states[s.State]++
	}
	x.family("litterbox_sandboxes", "gauge", "Sandboxes by state.")
	for _, state := range []sandbox.State{sandbox.Creating, sandbox.Running, sandbox.Paused, sandbox.Unreachable, sandbox.Stopped, sandbox.Failed, sandbox.Orphaned, sandbox.Deleting} {
		x.sample("litterbox_sandboxes", float64(states[state]), "state", string(state))
	}
	each := func(name, kind, help string, write func(s engine.Sample, labels []string)) {
		x.family(name, kind, help)
		for _, s := range samples {
			write(s, []string{"sandbox", s.Name, "repository", s.Repository})
		}
	}
	each("litterbox_sandbox_info", "gauge", "One for each sandbox, with what does not change.", func(s engine.Sample, labels []string) {
		x.sample("litterbox_sandbox_info", 1, append(labels, "branch", s.Branch, "driver", s.Driver, "isolation", string(s.Isolation), "network", s.Network)...)
	})
	for _, g := range gauges() {
		each(g.name, g.kind, g.help, func(s engine.Sample, labels []string) {
			if s.Resources != nil && g.value(*s.Resources) >= 0 {
				x.sample(g.name, g.value(*s.Resources), labels...)
			}
		})
	}
	exposeMachines(samples, each, x)
	each("litterbox_sandbox_disk_bytes", "gauge", "Disk taken by the sandbox alone, where it was asked for.", func(s engine.Sample, labels []string) {
		if s.Disk != nil {
			x.sample("litterbox_sandbox_disk_bytes", float64(*s.Disk), labels...)
		}
	})
	each("litterbox_sandbox_network_attempts_total", "counter", "Connections, datagram flows and names tried, by verdict.", func(s engine.Sample, labels []string) {
		x.sample("litterbox_sandbox_network_attempts_total", float64(s.Traffic.Allowed), append(labels, "verdict", "allow")...)
		x.sample("litterbox_sandbox_network_attempts_total", float64(s.Traffic.Refused), append(labels, "verdict", "deny")...)
	})
	each("litterbox_sandbox_network_bytes_total", "counter", "Bytes that flowed, by direction as the sandbox sees it.", func(s engine.Sample, labels []string) {
		x.sample("litterbox_sandbox_network_bytes_total", float64(s.Traffic.In), append(labels, "direction", "in")...)
		x.sample("litterbox_sandbox_network_bytes_total", float64(s.Traffic.Out), append(labels, "direction", "out")...)
	})
	each("litterbox_sandbox_model_cost_usd_total", "counter", "Dollars that counted calls of models came to, by the table of prices.", func(s engine.Sample, labels []string) {
		if s.Cost != nil {
			x.sample("litterbox_sandbox_model_cost_usd_total", float64(s.Cost.Cost)/1e9, labels...)
		}
	})
	each("litterbox_sandbox_model_tokens_total", "counter", "Tokens of counted calls of models, by kind.", func(s engine.Sample, labels []string) {
		if s.Cost == nil {
			return
		}
		for _, kind := range []struct {
			name   string
			tokens int64
		}{{"input", s.Cost.Input}, {"output", s.Cost.Output}, {"cache_read", s.Cost.CacheRead}, {"cache_write", s.Cost.CacheWrite}} {
			x.sample("litterbox_sandbox_model_tokens_total", float64(kind.tokens), append(labels, "kind", kind.name)...)
		}
	})
	each("litterbox_sandbox_model_calls_total", "counter", "Counted calls of models.", func(s engine.Sample, labels []string) {
		if s.Cost != nil {
			x.sample("litterbox_sandbox_model_calls_total", float64(s.Cost.Calls), labels...)
		}
	})
	each("litterbox_sandbox_failed_runs_total", "counter", "Runs that could not be carried out.", func(s engine.Sample, labels []string) {
		x.sample("litterbox_sandbox_failed_runs_total", float64(s.Commands.Failed), labels...)
	})
	each("litterbox_sandbox_command_duration_seconds", "histogram", "How long runs took.", func(s engine.Sample, labels []string) {
		const name = "litterbox_sandbox_command_duration_seconds"
		for i, bound := range engine.Latencies() {
			x.sample(name+"_bucket", float64(s.Commands.Within[i]), append(labels, "le", strconv.FormatFloat(bound.Seconds(), 'g', -1, 64))...)
		}
		x.sample(name+"_bucket", float64(s.Commands.Completed), append(labels, "le", "+Inf")...)
		x.sample(name+"_sum", s.Commands.Total.Seconds(), labels...)
		x.sample(name+"_count", float64(s.Commands.Completed), labels...)
	})
	each("litterbox_sandbox_heartbeat_age_seconds", "gauge", "Age of the lease's last heartbeat; over 90 it has expired.", func(s engine.Sample, labels []string) {
		if s.Heartbeat != nil {
			x.sample("litterbox_sandbox_heartbeat_age_seconds", max(0, now.Sub(*s.Heartbeat).Seconds()), labels...)
		}
	})
	each("litterbox_service_up", "gauge", "1 when a service is ready, 0 when not.", func(s engine.Sample, labels []string) {
		for _, service := range s.Services {
			up := 0.0
			if service.State == "running" {
				up = 1
			}
			x.sample("litterbox_service_up", up, append(labels, "service", service.Name)...)
		}
	})
	return x.b.String()
}
