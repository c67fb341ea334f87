package cli_test

import (
	"context"
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/litterbox-sandbox/litterbox/internal/engine"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
)

// samples are a sandbox about which everything is known, with a name that would
// break the format, and one about which nothing is.
func samples() []engine.Sample {
	heartbeat, disk := time.Now().Add(-5*time.Second), int64(4096)
	within := make([]int64, len(engine.Latencies()))
	for i := range within {
		within[i] = 3
	}
	return []engine.Sample{
		{
			Info: engine.Info{Name: "busy", Repository: "/odd \"path\"\nwith\\everything", State: sandbox.Running, Driver: "namespace"},
			Resources: &engine.Metrics{
				CPU: 1500 * time.Millisecond, Memory: 1 << 20, Processes: 7, Threads: 12, Uptime: time.Hour, Read: 10, Written: 20, OOMKills: 1, RefusedPIDs: 2,
			},
			Traffic:   engine.NetworkCounts{Allowed: 3, Refused: 4, In: 5, Out: 6},
			Commands:  engine.CommandCounts{Completed: 3, Failed: 1, Total: 30 * time.Millisecond, Within: within},
			Services:  []engine.ServiceStatus{{Name: "db", State: "running"}, {Name: "web", State: "backoff"}},
			Heartbeat: &heartbeat, Disk: &disk,
		},
		{
			Info:      engine.Info{Name: "idle", Repository: "/plain", State: sandbox.Stopped},
			Resources: nil, Commands: engine.CommandCounts{Within: make([]int64, len(engine.Latencies()))},
		},
	}
}

func printed(t *testing.T) string {
	t.Helper()
	e := &fake{samples: func() ([]engine.Sample, error) { return samples(), nil }}
	return lb(t, e, "", "metrics").Stdout
}

// Prometheus' own parser reads the output, and finds the intended values.
func TestMetricsAreReadByPrometheus(t *testing.T) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(printed(t)))
	if err != nil {
		t.Fatal(err)
	}
	cpu := families["litterbox_sandbox_cpu_seconds_total"].GetMetric()
	if len(cpu) != 1 || cpu[0].GetCounter().GetValue() != 1.5 {
		t.Errorf("processor time is %v, want 1.5 of one sandbox", cpu)
	}
	for _, label := range cpu[0].GetLabel() {
		if label.GetName() == "repository" && label.GetValue() != samples()[0].Repository {
			t.Errorf("the repository is %q", label.GetValue())
		}
	}
	took := families["litterbox_sandbox_command_duration_seconds"].GetMetric()
	if len(took) != 2 || took[0].GetHistogram().GetSampleCount() != 3 || len(took[0].GetHistogram().GetBucket()) != len(engine.Latencies())+1 {
		t.Errorf("the histogram is %v", took)
	}
	for name, family := range families {
		if family.GetHelp() == "" || !strings.HasPrefix(name, "litterbox_") {
			t.Errorf("%s has no help, or no prefix", name)
		}
		if counter := family.GetType().String() == "COUNTER"; counter != strings.HasSuffix(name, "_total") {
			t.Errorf("%s is a %s", name, family.GetType())
		}
	}
}

// Every metric that the dashboard asks for exists.
func TestDashboard(t *testing.T) {
	data, err := os.ReadFile("../../../docs/grafana.json")
	if err != nil {
		t.Fatal(err)
	}
	if !json.Valid(data) {
		t.Fatal("docs/grafana.json is not JSON")
	}
	known := regexp.MustCompile(`(?m)^# TYPE (\S+)`).FindAllStringSubmatch(printed(t), -1)
	asked := regexp.MustCompile(`litterbox_[a-z_]+`).FindAllString(string(data), -1)
	if len(asked) < 8 {
		t.Errorf("the dashboard asks for %d metrics only", len(asked))
	}
	for _, name := range asked {
		name = strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(name, "_bucket"), "_sum"), "_count")
		if !slices.ContainsFunc(known, func(m []string) bool { return m[1] == name }) {
			t.Errorf("the dashboard asks for %s, which is not printed", name)
		}
	}
}

func (f *fake) Samples(context.Context, string, bool, bool) ([]engine.Sample, error) {
	return f.samples()
}

// What a hypervisor says about machines is printed for those sandboxes that have one,
// as far as it was measured.
func TestMetricsOfMachines(t *testing.T) {
	if strings.Contains(printed(t), "litterbox_machine_") {
		t.Error("there are metrics of machines without a machine")
	}
	all, deaf := samples(), false
	all[0].Machine = &engine.Machinery{Name: "litterbox-1", State: "running", Reason: "from snapshot", CPU: 2 * time.Second, Memory: 1, Balloon: 2, Used: -1, Read: 3, Written: 4, Agent: &deaf}
	e := &fake{samples: func() ([]engine.Sample, error) { return all, nil }}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(lb(t, e, "", "metrics").Stdout))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]float64{
		"litterbox_machine_state": 1, "litterbox_machine_memory_bytes": 1, "litterbox_machine_balloon_bytes": 2, "litterbox_machine_agent_up": 0,
		"litterbox_machine_cpu_seconds_total": 2, "litterbox_machine_block_read_bytes_total": 3, "litterbox_machine_block_written_bytes_total": 4,
	} {
		got := families[name].GetMetric()
		if len(got) != 1 || got[0].GetGauge().GetValue()+got[0].GetCounter().GetValue() != want {
			t.Errorf("%s is %v, not %v", name, got, want)
		}
	}
	if got := families["litterbox_machine_used_bytes"].GetMetric(); len(got) > 0 {
		t.Errorf("what was not measured is %v", got)
	}
	state := families["litterbox_machine_state"].GetMetric()[0].String()
	for _, want := range []string{"litterbox-1", "running", "from snapshot", "busy"} {
		if !strings.Contains(state, want) {
			t.Errorf("the state has no %q: %s", want, state)
		}
	}
}
