package app

import (
	"slices"
	"strings"

	"coder/internal/authored/skills"
	"coder/internal/policy/mode"
	"coder/internal/tool"
)

// leanBelow is the window, in tokens, in which all tools would leave too little
// room for the work.
const leanBelow = 16 << 10

// everyday are the classes of tools that nearly all work is done with.
var everyday = []tool.Class{tool.ReadsFile, tool.ListsFolder, tool.FindsFiles, tool.SearchesText, tool.RunsShell, tool.EditsFile}

// lean reports whether the model is told of few tools, in short: as the person
// says or else where the window is known to be small. What the person lets a
// conversation have has nothing to do with it.
func (a *App) lean() bool {
	switch a.Config.Runtime.Tools {
	case "lean":
		return true
	case "full":
		return false
	}
	window, known := a.window(a.ModelName())
	return known && window < leanBelow
}

// unspoken are the tools that the model is not told of, which run nevertheless:
// those that cannot work here, and of few all that are neither for every day nor
// of the mode.
func (a *App) unspoken(t *toolkit, m mode.Mode, lean bool, listed []skills.Skill) func(name string) bool {
	return func(name string) bool {
		class := tool.ClassOf(name)
		switch {
		case (class == tool.ReadsGit || class == tool.ChangesGit) && !t.git(), class == tool.NavigatesCode && !t.servers():
			return true
		case strings.HasPrefix(name, "mcp__"), class == tool.FindsTools, class == tool.GivesAnswer:
			return false // the person wants them
		case class == tool.KeepsMemory && !a.offersMemory():
			return true
		case class == tool.LoadsSkill && lean:
			return len(listed) == 0
		}
		return lean && !slices.Contains(everyday, class) && !slices.Contains(m.Keeps, class)
	}
}

// ofPeople are the skills that somebody here wrote.
func ofPeople(list []skills.Skill) []skills.Skill {
	return slices.DeleteFunc(slices.Clone(list), func(s skills.Skill) bool { return s.Path == "" })
}
