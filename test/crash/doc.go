// Package crash kills litterbox at every step that changes something on disk
// or starts something, and shows that nothing committed is lost and that the
// next command repairs the rest. It kills from outside, with ptrace(2), so that
// the program under test is the one that users run.
package crash
