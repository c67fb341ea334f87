package fake_test

import (
	"context"
	"maps"
	"os"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/litterbox-sandbox/litterbox/internal/driver"
	"github.com/litterbox-sandbox/litterbox/internal/driver/drivertest"
	"github.com/litterbox-sandbox/litterbox/internal/driver/fake"
)

func newEnv(t testing.TB, options fake.Options) drivertest.Env {
	machine := fake.NewMachine()
	return drivertest.Env{
		Dir:    t.TempDir(),
		Driver: func() driver.Driver { return fake.New(machine, options) },
		Kill:   func(_ context.Context, lease driver.Lease) error { return machine.Kill(lease) },
		Deafen: func(_ context.Context, lease driver.Lease, deaf bool) error { return machine.Deafen(lease, deaf) },
		Places: func() ([]string, error) { return machine.Places(), nil },
	}
}

func TestContract(t *testing.T) {
	drivertest.RunTests(t, func(t testing.TB) drivertest.Env { return newEnv(t, fake.Options{}) })
}

// A driver that declares nothing passes by refusing.
func TestContractMinimal(t *testing.T) {
	drivertest.RunTests(t, func(t testing.TB) drivertest.Env { return newEnv(t, fake.Options{Minimal: true}) })
}

// caughtBy says which check each defect fails; "refused: " stands for the part
// of a check that runs if the operation is not declared.
func caughtBy() map[fake.Defect]string {
	return map[fake.Defect]string{
		fake.GreetsWithAnotherVersion: "says hello",
		fake.LosesExitCodes:           "runs commands",
		fake.LetsStrangersIn:          "answers its own keeper only",
		fake.AcquiresTwice:            "acquires once",
		fake.RemembersInMemory:        "is found from its record",
		fake.AttachesToNothing:        "is lost after destroy",
		fake.FailsSecondDestroy:       "destroys twice",
		fake.FailsOrderlyDestroy:      "destroys after an orderly end",
		fake.LeavesProcesses:          "destroys what runs",
		fake.LeavesFailedPlaces:       "fails without a trace",
		fake.LeaksErrno:               "seals foreign errors",
		fake.RecoverEndsPlaces:        "recovers twice",
		fake.EndsWithItsWire:          "survives a cut wire",
		fake.TakesSilenceForDeath:     "tells silence from death",
		fake.AnswersForTheDeaf:        "tells silence from death",
		fake.RecoverEndsTheDeaf:       "tells silence from death",
		fake.MissesKilledGuest:        "notices a killed guest",
		fake.LosesFilesInCrash:        "keeps files over a crash",
		fake.LeavesCanceledPlaces:     "cancels without a trace",
		fake.ReversesLayers:           "shows layers, topmost first",
		fake.WritesIntoLayers:         "never changes a layer",
		fake.HidesChanges:             "puts changes into the upper directory",
		fake.ForgetsDeletions:         "keeps deletions",
		fake.NeedsLayers:              "shows a copy",
		fake.ChangesOwnership:         "answers ownership the same each time",
		fake.StandsElsewhere:          "stands at the workspace",
		fake.LeaksEnvironment:         "has the environment it was given",
		fake.ForgetsHome:              "keeps its home",
		fake.RunsAsSomebodyElse:       "runs as its user",
		fake.HasAnotherName:           "is called by its name",
		fake.MountsWritable:           "mounts read-only",
		fake.SharesNothing:            "mounts read-only",
		fake.LendsOnce:                "shows what it is lent",
		fake.MixesPlaces:              "holds many places apart",
		fake.CarriesOneWire:           "carries many wires",
		fake.PausesNothing:            "pauses and resumes",
		fake.PausesLate:               "pauses and resumes",
		fake.OutlivesInPause:          "ends while it is paused",
		fake.KeepsNoLimits:            "keeps limits",
		fake.StartsUnlimited:          "keeps limits",
		fake.RevertsNothing:           "returns to a snapshot",
		fake.ForgetsSnapshots:         "lists its snapshots",
		fake.TearsRunningSnapshots:    "takes snapshots while it runs",
		fake.RevertsWithoutProcesses:  "brings processes back",
		fake.ForksIntoOne:             "forks",
		fake.KeepsTooMuch:             "keeps goldens",
		fake.TakesHalfGoldens:         "keeps goldens",
		fake.MeasuresNothing:          "measures",
		fake.ForgetsTraits:            "says what its places are",
		fake.ClaimsAnotherSystem:      "runs the system that it says",
		fake.ClaimsDescriptors:        "hands connections over as it says",
		fake.LosesStreams:             "hands connections over as it says",
		fake.ShowsTheHost:             "isolates fully",
		fake.ShowsProcesses:           "isolates fully",
		fake.KeepsPrivileges:          "isolates fully",
		fake.LetsOut:                  "lets nothing out",
		fake.PretendsToPause:          "refused: pauses and resumes",
		fake.PretendsToResume:         "refused: ends while it is paused",
		fake.PretendsToLimit:          "refused: keeps limits",
		fake.PretendsToRevert:         "refused: returns to a snapshot",
		fake.PretendsToList:           "refused: lists its snapshots",
		fake.PretendsToFreeze:         "refused: takes snapshots while it runs",
		fake.PretendsToRestore:        "refused: brings processes back",
		fake.PretendsToFork:           "refused: forks",
		fake.PretendsToKeep:           "refused: keeps goldens",
		fake.CopiesLive:               "shows a live directory",
		fake.ProtectsNothing:          "shows a live directory",
		fake.PretendsToBeLive:         "refused: shows a live directory",
		fake.PretendsToMeasure:        "refused: measures",
		fake.PretendsToIsolate:        "refused: isolates fully",
		fake.PretendsToCarry:          "refused: puts changes into the upper directory",
		fake.PretendsToMount:          "refused: mounts read-only",
		fake.EmptiesTheTrash:          "comes back from the trash",
		fake.PretendsToLend:           "refused: shows what it is lent",
		fake.PretendsToForget:         "refused: keeps its home",
	}
}

// A check that cannot fail is a defect of the contract. Each defect meets its own
// check and each fourth of the others; with LITTERBOX_TEST_LONG it meets all of
// them (make test-contract).
func TestEveryDefectFailsExactlyItsCheck(t *testing.T) {
	all := os.Getenv("LITTERBOX_TEST_LONG") != ""
	for i, defect := range fake.Defects() {
		t.Run(string(defect), func(t *testing.T) {
			var failed []string
			for j, check := range drivertest.Checks() {
				env := newEnv(t, fake.Options{Defect: defect})
				name := check.Name
				if check.Needs != nil && !check.Needs(env.Driver().Capabilities()) {
					name = "refused: " + name
				}
				if !all && name != caughtBy()[defect] && (i+j)%4 != 0 {
					continue
				}
				if defect == fake.LetsStrangersIn && name == caughtBy()[fake.LosesStreams] {
					continue // the server that lets strangers in carries no connections
				}
				// In a bubble, waiting for something that never ends takes no time.
				synctest.Test(t, func(t *testing.T) {
					if check.Perform(t.Context(), &env) != nil {
						failed = append(failed, name)
					}
				})
			}
			if diff := cmp.Diff([]string{caughtBy()[defect]}, failed); diff != "" {
				t.Errorf("checks that fail (-want +got):\n%s", diff)
			}
		})
	}
}

func TestEveryCheckHasADefect(t *testing.T) {
	var want []string
	for _, check := range drivertest.Checks() {
		want = append(want, check.Name)
		if check.Needs != nil {
			want = append(want, "refused: "+check.Name)
		}
		if check.Why == "" || check.Run == nil || (check.Needs == nil) != (check.Absent == nil) {
			t.Errorf("check %q is not whole", check.Name)
		}
	}
	got := slices.Collect(maps.Values(caughtBy()))
	slices.Sort(want)
	slices.Sort(got)
	got = slices.Compact(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("checks that some defect fails (-all +failing):\n%s", diff)
	}
}
