// Package outpost is how this program speaks with an outpost: the part of it that
// runs in a machine outside every place, keeps layers, makes places and lists
// their changes. One byte stream carries any number of streams ([Link]), each with
// one request ([Request]) and its answer; trees of files travel in a format of
// their own ([WriteTree], [ReadTree]).
//
// Neither side trusts the other: frames, messages, windows and the number of
// streams are bounded, and what a machine says about its places only affects
// their branches. The streams are not encrypted; the wire to a guest, which goes
// through one of them, is encrypted end to end.
//
// Package station is the machine's side, package driver/remote the host's. It
// makes no decisions itself. Start reading at [Link] and [Request].
package outpost
