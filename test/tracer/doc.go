// Package tracer follows programs with ptrace(2) and does something to them at
// a chosen system call: it kills one of them, or makes that call fail. It works
// from outside, so that the programs under test are the ones that users run.
//
// It knows nothing of litterbox. Start reading at Target.
package tracer
