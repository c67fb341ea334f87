package fake

// Defect is one thing that a driver can do wrong. Each fails one check of the
// contract and no other, which exposes a check that passes everything.
//
// To add one: 1. a constant and a line in [Defects], 2. the wrong behaviour,
// in one place, 3. a line in the table of fake_test.go.
type Defect string

// The defects, in the order of the contract's checks.
const (
	GreetsWithAnotherVersion Defect = "greets with another version"
	LosesExitCodes           Defect = "loses exit codes"
	LetsStrangersIn          Defect = "lets strangers in"
	AcquiresTwice            Defect = "acquires twice"
	RemembersInMemory        Defect = "remembers leases in memory"
	AttachesToNothing        Defect = "attaches to a destroyed place"
	FailsSecondDestroy       Defect = "fails the second destroy"
	FailsOrderlyDestroy      Defect = "fails to destroy what has ended"
	LeavesProcesses          Defect = "leaves processes after destroy"
	LeavesFailedPlaces       Defect = "leaves a place after a failure"
	LeaksErrno               Defect = "leaks an errno"
	RecoverEndsPlaces        Defect = "ends a healthy place in recover"
	EndsWithItsWire          Defect = "ends with its wire"
	TakesSilenceForDeath     Defect = "takes silence for death"
	AnswersForTheDeaf        Defect = "answers for a place that does not"
	RecoverEndsTheDeaf       Defect = "ends a place that does not answer in recover"
	MissesKilledGuest        Defect = "misses that the guest was killed"
	LosesFilesInCrash        Defect = "loses files in a crash"
	LeavesCanceledPlaces     Defect = "leaves a place after a cancellation"
	ReversesLayers           Defect = "reverses the layers"
	WritesIntoLayers         Defect = "writes into layers"
	HidesChanges             Defect = "keeps changes elsewhere"
	ForgetsDeletions         Defect = "forgets deletions"
	NeedsLayers              Defect = "shows nothing without layers"
	ChangesOwnership         Defect = "changes its mind about ownership"
	StandsElsewhere          Defect = "runs commands elsewhere"
	LeaksEnvironment         Defect = "leaks the host's environment"
	ForgetsHome              Defect = "forgets the home"
	RunsAsSomebodyElse       Defect = "runs as another user"
	HasAnotherName           Defect = "has another host name"
	MountsWritable           Defect = "mounts writable"
	SharesNothing            Defect = "shares nothing"
	LendsOnce                Defect = "shows only what it was lent first"
	EmptiesTheTrash          Defect = "empties the trash when it is asked for its room"
	MixesPlaces              Defect = "mixes places up"
	CarriesOneWire           Defect = "carries one wire"
	PausesNothing            Defect = "pauses nothing"
	PausesLate               Defect = "pauses when its time is over"
	OutlivesInPause          Defect = "does not end while it is paused"
	KeepsNoLimits            Defect = "keeps no limits"
	StartsUnlimited          Defect = "starts without its limits"
	RevertsNothing           Defect = "reverts nothing"
	ForgetsSnapshots         Defect = "forgets snapshots"
	TearsRunningSnapshots    Defect = "takes a snapshot without what was just written"
	RevertsWithoutProcesses  Defect = "reverts without processes"
	ForksIntoOne             Defect = "forks into one"
	KeepsTooMuch             Defect = "keeps a golden of everything"
	TakesHalfGoldens         Defect = "takes half a golden for a whole one"
	ForgetsTraits            Defect = "says nothing of its places"
	ClaimsAnotherSystem      Defect = "claims another system"
	ClaimsDescriptors        Defect = "claims to pass descriptors"
	LosesStreams             Defect = "loses what its streams carry"
	ShowsTheHost             Defect = "shows the host's files"
	ShowsProcesses           Defect = "shows the host's processes"
	KeepsPrivileges          Defect = "keeps privileges"
	LetsOut                  Defect = "lets connections out"
	MeasuresNothing          Defect = "measures nothing"
	CopiesLive               Defect = "shows a copy of a live directory"
	ProtectsNothing          Defect = "protects nothing of a live directory"

	// These declare less and yet pretend to do it.
	PretendsToPause   Defect = "pretends to pause"
	PretendsToResume  Defect = "pretends to resume"
	PretendsToLimit   Defect = "pretends to limit"
	PretendsToRevert  Defect = "pretends to revert"
	PretendsToList    Defect = "pretends to have snapshots"
	PretendsToFreeze  Defect = "pretends to take snapshots while it runs"
	PretendsToRestore Defect = "pretends to bring processes back"
	PretendsToFork    Defect = "pretends to fork"
	PretendsToKeep    Defect = "pretends to keep goldens"
	PretendsToIsolate Defect = "isolates less without a word"
	PretendsToCarry   Defect = "pretends to carry files"
	PretendsToMount   Defect = "pretends to mount nothing"
	PretendsToLend    Defect = "pretends to lend nothing"
	PretendsToForget  Defect = "pretends to forget the home"
	PretendsToBeLive  Defect = "pretends to show no live directory"
	PretendsToMeasure Defect = "pretends to measure"
)

// Defects lists every defect.
func Defects() []Defect {
	return []Defect{
		GreetsWithAnotherVersion, LosesExitCodes, LetsStrangersIn, AcquiresTwice, RemembersInMemory,
		AttachesToNothing, FailsSecondDestroy, FailsOrderlyDestroy, LeavesProcesses, LeavesFailedPlaces, LeaksErrno,
		RecoverEndsPlaces, EndsWithItsWire, TakesSilenceForDeath, AnswersForTheDeaf, RecoverEndsTheDeaf, MissesKilledGuest, LosesFilesInCrash, LeavesCanceledPlaces,
		ReversesLayers, WritesIntoLayers, HidesChanges, ForgetsDeletions, NeedsLayers, ChangesOwnership,
		StandsElsewhere, LeaksEnvironment, ForgetsHome, RunsAsSomebodyElse, HasAnotherName, MountsWritable, SharesNothing,
		MixesPlaces, CarriesOneWire, PausesNothing, PausesLate, OutlivesInPause,
		KeepsNoLimits, StartsUnlimited, RevertsNothing, ForgetsSnapshots, TearsRunningSnapshots, RevertsWithoutProcesses, ForksIntoOne, KeepsTooMuch, TakesHalfGoldens, MeasuresNothing, CopiesLive, ProtectsNothing,
		ForgetsTraits, ClaimsAnotherSystem, ClaimsDescriptors, LosesStreams, ShowsTheHost, ShowsProcesses, KeepsPrivileges, LetsOut,
		PretendsToPause, PretendsToResume, PretendsToLimit, PretendsToRevert, PretendsToList, PretendsToFreeze, PretendsToRestore, PretendsToFork, PretendsToKeep,
		PretendsToMeasure, PretendsToIsolate, PretendsToCarry, PretendsToMount, PretendsToForget, PretendsToBeLive, LendsOnce, PretendsToLend, EmptiesTheTrash,
	}
}
