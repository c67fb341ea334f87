// Package metering meters calls of language models where they leave a sandbox:
// it is the hook of package intercept that reserves what a call may cost before
// it is sent, reads from the answer that streams back what it did cost, and
// refuses, in the provider's own error format, what a budget does not allow or
// what no budget could be kept for.
//
// It knows no formats and no prices (package meter) and keeps no accounts
// (package ledger). Start reading at [Hook].
package metering
