package guest

import "time"

// awake is a timer that counts only the time in which the sandbox was not
// paused: a command must not find its timeout over when it resumes.
type awake struct {
	over chan time.Time // gets one value when the time is over
	done chan struct{}
}

// The timer looks every step, and takes a gap that is longer by more than slack
// for a pause. A machine busy enough to make it that late only makes the
// timeout longer.
const (
	awakeStep  = time.Second
	awakeSlack = time.Second
)

func newAwake(after time.Duration) *awake {
	a := &awake{over: make(chan time.Time, 1), done: make(chan struct{})}
	go a.count(after)
	return a
}

func (a *awake) count(left time.Duration) {
	for left > 0 {
		step := min(left, awakeStep)
		began := time.Now()
		timer := time.NewTimer(step)
		select {
		case <-a.done:
			timer.Stop()
			return
		case <-timer.C:
		}
		left -= passed(step, time.Since(began))
	}
	a.over <- time.Now()
}

// passed is how much time a step counts for, given how long it took.
func passed(step, took time.Duration) time.Duration {
	if took > step+awakeSlack {
		return step
	}
	return took
}

func (a *awake) stop() { close(a.done) }
