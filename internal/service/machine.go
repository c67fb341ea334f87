package service

import "time"

// State of one service.
type State string

// The states of a service, the same in code, JSON, listings and docs.
const (
	Stopped  State = "stopped"  // it is not wanted, and nothing of it runs
	Waiting  State = "waiting"  // for the services that it needs
	Starting State = "starting" // its process runs and is not ready yet
	Running  State = "running"  // ready
	Stopping State = "stopping" // its remains are being ended
	Backoff  State = "backoff"  // it ended; it starts again in a while
	Exited   State = "exited"   // it ended, and its policy leaves it ended
)

// Paused is the state of a wanted service in a paused sandbox, which cannot be
// asked. No machine is ever in it.
const Paused State = "paused"

// States lists every state.
func States() []State {
	return []State{Stopped, Waiting, Starting, Running, Stopping, Backoff, Exited}
}

// Settled reports whether nothing happens to a service in this state by itself,
// or nothing soon: a caller that waits for an action waits for that.
func (s State) Settled() bool { return s != Waiting && s != Starting && s != Stopping }

// Event is something that happened to a service.
type Event string

// The events. The first three are wishes.
const (
	Start   Event = "start"
	Stop    Event = "stop"
	Again   Event = "restart"
	Met     Event = "needs are met"
	Failed  Event = "could not be started"
	Up      Event = "ready"
	TooLate Event = "not ready in time"
	Ended   Event = "process has ended"  // by itself, with success
	Crashed Event = "process has failed" // by itself, with an exit code or by a signal
	Gone    Event = "nothing of it is left"
	Rested  Event = "backoff is over"
)

// Action is what the supervisor must do about an event.
type Action string

// The actions.
const (
	Nothing Action = ""
	Seek    Action = "look for needs" // answer with Met, now or later
	Launch  Action = "launch"         // answer with Failed, Up, TooLate, Ended or Crashed
	End     Action = "end"            // signal, then kill, every process of it; answer with Gone
	Notify  Action = "notify"         // send the restart signal
	Rest    Action = "rest"           // answer with Rested after Delay
)

// Machine decides about one service. The zero value with a State of Stopped is
// one that has not been asked for yet.
type Machine struct {
	Restart  Restart // policy
	Reloads  bool    // a restart signal is configured
	State    State
	Wanted   bool
	Failures int // in a row

	next State // after Stopping, when it is wanted then
	ran  time.Time
}

// settled is how long a service must have been ready for its next crash to
// count as the first one.
const settled = 10 * time.Second

// Step takes an event and says what to do about it. An event that does not
// belong to the state is dropped: it came too late.
func (m *Machine) Step(e Event, now time.Time) Action {
	switch e {
	case Start:
		return m.start()
	case Stop:
		return m.stop()
	case Again:
		return m.again()
	}
	switch m.State {
	case Waiting:
		if e == Met {
			m.State = Starting
			return Launch
		}
	case Starting:
		switch e {
		case Up:
			m.State, m.ran = Running, now
		case Failed, TooLate, Ended, Crashed:
			return m.over(e, now)
		}
	case Running:
		if e == Ended || e == Crashed {
			return m.over(e, now)
		}
	case Stopping:
		if e == Gone {
			return m.gone()
		}
	case Backoff:
		if e == Rested {
			m.State = Waiting
			return Seek
		}
	}
	return Nothing
}

func (m *Machine) start() Action {
	m.Wanted = true
	switch m.State {
	case Stopped, Exited, Backoff:
		m.Failures = 0
		m.State = Waiting
		return Seek
	case Stopping:
		m.next = Waiting
	}
	return Nothing
}

func (m *Machine) stop() Action {
	m.Wanted = false
	switch m.State {
	case Waiting, Backoff, Exited:
		m.State = Stopped
	case Starting, Running:
		m.State = Stopping
		return End
	}
	return Nothing
}

func (m *Machine) again() Action {
	switch m.State {
	case Running:
		if m.Reloads {
			m.Wanted = true
			return Notify
		}
		fallthrough
	case Starting:
		m.Wanted, m.Failures = true, 0
		m.State, m.next = Stopping, Waiting
		return End
	}
	return m.start()
}

// over is the unrequested end of a process. Processes that it left behind are
// ended first, so that the next start finds its ports and locks free.
func (m *Machine) over(e Event, now time.Time) Action {
	if !m.ran.IsZero() && now.Sub(m.ran) >= settled {
		m.Failures = 0
	}
	m.ran = time.Time{}
	m.Failures++
	m.State, m.next = Stopping, Backoff
	if m.Restart == Never || m.Restart == OnFailure && e == Ended {
		m.next = Exited
	}
	return End
}

func (m *Machine) gone() Action {
	next := m.next
	m.next = Stopped
	m.ran = time.Time{}
	switch {
	case !m.Wanted:
		m.State = Stopped
		return Nothing
	case next == Backoff:
		m.State = Backoff
		return Rest
	case next == Exited:
		m.State = Exited
		return Nothing
	}
	m.State = Waiting
	return Seek
}

// The waits between crashes.
const (
	firstDelay = 250 * time.Millisecond
	maxDelay   = 30 * time.Second
)

// Delay is how long a service rests after that many failures in a row.
func Delay(failures int) time.Duration {
	delay := firstDelay
	for range failures - 1 {
		if delay *= 2; delay >= maxDelay {
			return maxDelay
		}
	}
	return delay
}
