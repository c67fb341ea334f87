package keeper

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/fault"
	"github.com/litterbox-sandbox/litterbox/internal/process"
	"github.com/litterbox-sandbox/litterbox/internal/sandbox"
	"github.com/litterbox-sandbox/litterbox/internal/seal"
	"github.com/litterbox-sandbox/litterbox/internal/wire"
)

// LimitsFile holds the limits of a sandbox, in its directory. The engine writes
// it; a keeper reads it when it starts and when it is told to (OpLimits).
const LimitsFile = "limits.json"

// Rules is the content of LimitsFile.
type Rules struct {
	Set       sandbox.Limits    `json:"set"`       // by litterbox limits, above what is configured
	Effective sandbox.Limits    `json:"effective"` // those that count
	From      map[string]string `json:"from"`      // sandbox.Limit.From, by name
	IdlePause time.Duration     `json:"idle_pause_ns,omitempty"`
	IdleStop  time.Duration     `json:"idle_stop_ns,omitempty"` // 0: the default; negative: never
}

// ReadRules reads the limits of the sandbox in dir; none when there is no file.
func ReadRules(dir string) (Rules, error) {
	var rules Rules
	data, err := process.ReadAtOnce(filepath.Join(dir, LimitsFile))
	if errors.Is(err, fs.ErrNotExist) {
		return rules, nil
	}
	if err == nil {
		err = seal.Decode(data, &rules)
	}
	if err != nil {
		return Rules{}, fault.Wrap(fault.Unavailable, err, "cannot read the sandbox's limits")
	}
	return rules, nil
}

// Supervised lists the limits that a keeper can keep by itself in a place with
// these traits, by looking and ending what is too much: it cannot keep a limit
// on what it cannot see. Time is the guest's to keep on every driver, and a
// budget the keeper's, as every call passes through it.
func Supervised(place sandbox.Traits) []string {
	names := []string{sandbox.LimitTime, sandbox.LimitBudget}
	if place.Measures(sandbox.MetricMemory) {
		names = append(names, sandbox.LimitMemory)
	}
	if place.Measures(sandbox.MetricThreads) {
		names = append(names, sandbox.LimitPIDs)
	}
	if place.Files == sandbox.FilesShared {
		names = append(names, sandbox.LimitDisk)
	}
	return names
}

// unkept lists the limits that neither the driver nor a keeper keeps. The
// driver is asked only where it matters, because it must look at the machine.
func (k *keeper) unkept(limits sandbox.Limits) []string {
	var names []string
	supervised := k.supervised()
	for _, name := range sandbox.LimitNames() {
		if limits.Get(name) > 0 && !slices.Contains(supervised, name) {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	kept := k.driver.Capabilities().Limits
	return slices.DeleteFunc(names, func(name string) bool { return slices.Contains(kept, name) })
}

// requireLimits refuses to start a sandbox that could not be limited as asked.
func (k *keeper) requireLimits() error {
	missing := k.unkept(k.rules.Effective)
	if len(missing) == 0 {
		return nil
	}
	return fault.New(fault.Unsupported, "cannot keep the limit of %s for sandbox %q: the %s driver does not on this machine",
		strings.Join(missing, " and "), k.order.Spec.Name, k.order.Driver).
		WithHint("litterbox doctor, or set it to none: limits.%s = \"none\" in the configuration", missing[0])
}

// requireRules refuses to start a sandbox whose network rules would not be
// enforced: only a place without any way out needs nothing to enforce them.
func (k *keeper) requireRules() error {
	if place := k.driver.Traits(); place.Enforcer != "" || place.Network == sandbox.NetworkNone {
		return nil
	}
	return fault.New(fault.Unsupported, "cannot keep the rules of the network for sandbox %q: nothing does on the %s driver",
		k.order.Spec.Name, k.order.Driver).WithHint("litterbox doctor --driver %s", k.order.Driver)
}

// limit puts the rules in force on the running place and remembers who keeps
// what.
func (k *keeper) limit(ctx context.Context, rules Rules) error {
	kept, err := k.driver.Limit(ctx, k.driverLease(), rules.Effective)
	if err != nil && !(errors.Is(err, driver.ErrUnsupported) && len(k.driver.Capabilities().Limits) == 0) {
		return err
	}
	k.limited(rules, kept)
	return nil
}

// limited remembers the rules, and who keeps what: the driver, or we.
func (k *keeper) limited(rules Rules, kept driver.InForce) {
	inForce := map[string]string{}
	maps.Copy(inForce, kept)
	for _, name := range k.supervised() {
		if rules.Effective.Get(name) > 0 && inForce[name] == "" {
			inForce[name] = "keeper"
			if name == sandbox.LimitTime {
				inForce[name] = "guest"
			}
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.rules, k.lease.InForce = rules, inForce
}

// changeLimits answers OpLimits.
func (k *keeper) changeLimits(ctx context.Context) error {
	k.limiting.Lock()
	defer k.limiting.Unlock()
	rules, err := ReadRules(k.order.Spec.StateDir)
	if err != nil {
		return err
	}
	if missing := k.unkept(rules.Effective); len(missing) > 0 {
		return fault.New(fault.Unsupported, "cannot keep the limit of %s for sandbox %q on this machine",
			strings.Join(missing, " and "), k.order.Spec.Name).WithHint("litterbox doctor")
	}
	if most := rules.Effective.Memory; most > 0 {
		if m, err := k.driver.CollectMetrics(ctx, k.driverLease()); err == nil && m.Memory > most {
			return fault.New(fault.Conflict, "cannot limit memory to %s: sandbox %q uses %s at this moment",
				sandbox.Bytes(most), k.order.Spec.Name, sandbox.Bytes(m.Memory))
		}
	}
	if err := k.limit(ctx, rules); err != nil {
		return err
	}
	if err := k.changeCosts(); err != nil {
		return err
	}
	k.idle.set(rules.IdlePause)
	k.supervisor.wakeUp()
	k.record(sandbox.EventLimits, map[string]string{"limits": said(rules.Effective)})
	return k.renew(sandbox.LeaseActive)
}

// limitAgain puts limits back in force that were taken away. Until that
// succeeds only the keeper keeps them, and status says so.
func (k *keeper) limitAgain(ctx context.Context) {
	k.limiting.Lock()
	defer k.limiting.Unlock()
	k.mu.Lock()
	rules := k.rules
	k.mu.Unlock()
	if err := k.limit(ctx, rules); err != nil {
		fmt.Fprintln(os.Stderr, "keeper: limits that were taken away are not in force again:", err)
		k.limited(rules, nil)
	}
}

// bounded returns a request for a command with the time limit in it.
func (k *keeper) bounded(request wire.Request, payload []byte) []byte {
	k.mu.Lock()
	most := k.rules.Effective.Time
	k.mu.Unlock()
	if request.Exec == nil || most <= 0 || request.Exec.Timeout > 0 && request.Exec.Timeout <= most {
		return payload
	}
	request.Exec.Timeout = most
	changed, err := json.Marshal(request)
	if err != nil {
		return payload // it was just read from JSON
	}
	return changed
}

// said lists limits for humans.
func said(limits sandbox.Limits) string {
	var all []string
	for _, name := range sandbox.LimitNames() {
		if text := limits.Text(name); text != "" && text != sandbox.None {
			all = append(all, name+"="+text)
		}
	}
	if len(all) == 0 {
		return sandbox.None
	}
	return strings.Join(all, " ")
}

// record emits an event. A failure to write it changes nothing else.
func (k *keeper) record(kind sandbox.EventType, data map[string]string) {
	if err := k.emit(&sandbox.Event{Type: kind, Data: data}); err != nil {
		fmt.Fprintln(os.Stderr, "keeper: an event was not recorded:", err)
	}
}
