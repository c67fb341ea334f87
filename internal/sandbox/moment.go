package sandbox

import "time"

// Moment is a point of time by a clock that cannot be set. The time of day can
// jump, by hand or by a time server, and goes on while a machine sleeps; judging
// silence by it takes a process that could not speak for dead.
type Moment struct {
	// Boot is the run of the machine: /proc/sys/kernel/random/boot_id. Moments
	// of different runs cannot be compared, and nothing outlives its run.
	Boot string `json:"boot"`
	// Awake is the time since then in which the machine did not sleep:
	// CLOCK_MONOTONIC, clock_gettime(2).
	Awake time.Duration `json:"awake_ns"`
}

// Known reports whether the moment is set: older programs wrote none.
func (m Moment) Known() bool { return m.Boot != "" }

// Age is the time from m to now. It is not known when the machine was started
// again in between.
func (m Moment) Age(now Moment) (age time.Duration, known bool) {
	if !m.Known() || m.Boot != now.Boot || m.Awake > now.Awake {
		return 0, false
	}
	return now.Awake - m.Awake, true
}

// How long there may be no heartbeat before a hold or a lease has expired. A keeper
// beats less often than the holder of a sandbox: there is one for each running
// sandbox, and each beat of an idle one wakes the machine.
const (
	HoldSilence  = 90 * time.Second
	LeaseSilence = 15 * time.Minute
)

// Expired reports whether, at now, a heartbeat at m is longer ago than silence.
func (m Moment) Expired(now Moment, silence time.Duration) bool {
	age, known := m.Age(now)
	return !known || age > silence
}

// Expired reports whether the hold has had no heartbeat for too long. The time of
// day counts only for a hold that an older program wrote.
func (a *Agent) Expired(now Moment, today time.Time) bool {
	if !a.Beat.Known() {
		return today.After(a.ExpiresAt)
	}
	return a.Beat.Expired(now, HoldSilence)
}

// Expired reports whether the lease has had no heartbeat for too long, likewise.
func (l *Lease) Expired(now Moment, today time.Time) bool {
	if !l.Beat.Known() {
		return today.After(l.ExpiresAt)
	}
	return l.Beat.Expired(now, LeaseSilence)
}
