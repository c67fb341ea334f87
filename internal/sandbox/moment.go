package sandbox

import "time"

// Moment is a point of time by a clock that nobody sets. The time of day can
// jump, by hand or by a time server, and goes on while a machine sleeps; who
// judges by it whether somebody has been silent for too long takes those who
// could not speak for dead.
type Moment struct {
	// Boot is the run of the machine: /proc/sys/kernel/random/boot_id. Moments
	// of different runs cannot be compared, and nothing outlives its run.
	Boot string `json:"boot"`
	// Awake is the time since then in which the machine did not sleep:
	// CLOCK_MONOTONIC, clock_gettime(2).
	Awake time.Duration `json:"awake_ns"`
}

// Known tells whether there is such a moment: older programs wrote none.
func (m Moment) Known() bool { return m.Boot != "" }

// Age is the time from m to now. It is not known when the machine was started
// anew in between.
func (m Moment) Age(now Moment) (age time.Duration, known bool) {
	if !m.Known() || m.Boot != now.Boot || m.Awake > now.Awake {
		return 0, false
	}
	return now.Awake - m.Awake, true
}

// Silence is how long there may be no heartbeat before a lease or a hold has
// expired.
const Silence = 90 * time.Second

// Expired tells whether a heartbeat at m is too long ago at now.
func (m Moment) Expired(now Moment) bool {
	age, known := m.Age(now)
	return !known || age > Silence
}

// Expired tells whether the hold has had no heartbeat for too long. The time of
// day counts only for a hold that an older program wrote.
func (a *Agent) Expired(now Moment, today time.Time) bool {
	if !a.Beat.Known() {
		return today.After(a.ExpiresAt)
	}
	return a.Beat.Expired(now)
}

// Expired tells whether the lease has had no heartbeat for too long, likewise.
func (l *Lease) Expired(now Moment, today time.Time) bool {
	if !l.Beat.Known() {
		return today.After(l.ExpiresAt)
	}
	return l.Beat.Expired(now)
}
