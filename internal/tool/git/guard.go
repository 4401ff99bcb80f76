package git

import (
	"slices"

	"coder/internal/host/gitsafe"
)

// always holds for every run: nothing of the repository's runs, and the output
// has the form the tools read.
var always = slices.Concat(gitsafe.Always, []gitsafe.Setting{
	{Key: "core.quotepath", Value: "false"},
	{Key: "color.ui", Value: "false"},
	{Key: "color.status", Value: "false"},
	{Key: "commit.gpgsign", Value: "false"},
	{Key: "i18n.commitencoding", Value: "UTF-8"},
	{Key: "i18n.logoutputencoding", Value: "UTF-8"},
	{Key: "status.relativepaths", Value: "true"},
})

// environment is that of every run.
func environment(env []string, settings []gitsafe.Setting) []string {
	return append(gitsafe.Environment(env, settings), "GIT_LITERAL_PATHSPECS=1", "LC_ALL=C")
}
