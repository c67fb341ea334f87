// Package metering meters calls of language models where they leave a sandbox:
// it is the hook of package intercept that reserves what a call may cost before
// it is sent, reads what it did cost from the answer that streams back, and
// refuses, in the provider's own format of errors, what a budget does not allow
// or what no budget could be kept for.
//
// It knows no formats and no prices (package meter) and keeps no accounts
// (package ledger). Start reading at [Hook].
package metering
