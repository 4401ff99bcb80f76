package app

import (
	"runtime/debug"
	"testing"
)

func TestTheVersionIsTheOneOfTheReleaseOrOfTheTag(t *testing.T) {
	for noted, want := range map[string]string{
		"v1.2.3":                                    "1.2.3",
		"v1.2.3-rc.1":                               "1.2.3-rc.1",
		"v0.0.0-20261119080000-743ac1c19cc1":        developmentVersion,
		"v1.2.4-0.20261119080000-743ac1c19cc1":      developmentVersion,
		"v1.2.4-rc.1.0.20261119080000-743ac1c19cc1": developmentVersion,
		"v1.2.3+dirty":                              developmentVersion,
		"(devel)":                                   developmentVersion,
		"":                                          developmentVersion,
	} {
		read := func() (*debug.BuildInfo, bool) { return &debug.BuildInfo{Main: debug.Module{Version: noted}}, true }
		if got := resolveVersion("", read); got != want {
			t.Errorf("built from %q it is %q, want %q", noted, got, want)
		}
		if got := resolveVersion("9.9.9", read); got != "9.9.9" {
			t.Errorf("the build set 9.9.9 and it is %q", got)
		}
	}
	if got := resolveVersion("", func() (*debug.BuildInfo, bool) { return nil, false }); got != developmentVersion {
		t.Errorf("with nothing noted it is %q", got)
	}
}
