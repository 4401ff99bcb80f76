package app

import (
	"slices"
	"strings"

	"coder/internal/authored/skills"
	"coder/internal/core/chat"
	"coder/internal/policy/mode"
	"coder/internal/tool"
)

// leanWindow is the window, in tokens, in which all tools would leave too little space for the work.
const leanWindow = 16 << 10

// everydayTools are the classes of tools that nearly all work needs.
var everydayTools = []tool.Class{tool.ClassReadFile, tool.ClassListFolder, tool.ClassFindFiles, tool.ClassSearchText,
	tool.ClassShell, tool.ClassEditFile}

// isLean reports whether the model gets few tools with short descriptions: as configured, otherwise
// if the window is known to be small. The user's limit on conversations does not matter.
func (a *Models) isLean() bool {
	switch a.Config.Runtime.Tools {
	case "lean":
		return true
	case "full":
		return false
	}
	window, known := a.modelWindow(a.ModelName())
	return known && window < leanWindow
}

// unadvertisedFilter returns a function that reports whether the model is not told
// about a tool, which runs nevertheless: a tool that cannot work here,
// and in lean mode every tool that is neither everyday nor the mode's.
func (a *Session) unadvertisedFilter(m mode.Mode, lean bool, listed []skills.Skill) func(name string) bool {
	return func(name string) bool {
		class := tool.ClassOf(name)
		switch {
		case (class == tool.ClassReadGit || class == tool.ClassChangeGit) && !a.kit.hasGit(),
			class == tool.ClassNavigateCode && !a.kit.hasServers():
			return true
		case strings.HasPrefix(name, "mcp__"), class == tool.ClassFindTools, class == tool.ClassFinalAnswer:
			return false // the user wants them
		case class == tool.EditsNotebook:
			return !a.kit.notebooks.Load()
		case class == tool.ClassMemory && !a.isMemoryUseful():
			return true
		case class == tool.ClassLoadSkill && lean:
			return len(listed) == 0
		}
		return lean && !slices.Contains(everydayTools, class) && !a.isEssential(m, class)
	}
}

// isEssential reports whether a tool is part of the mode, or of any mode if the model sees the tools of all.
func (a *Site) isEssential(m mode.Mode, class tool.Class) bool {
	return slices.Contains(m.Essential, class) || a.Config.Tools.List == "all" && mode.IsEssential(class)
}

// customSkills returns the skills that are not built in.
func customSkills(list []skills.Skill) []skills.Skill {
	return slices.DeleteFunc(slices.Clone(list), func(s skills.Skill) bool { return s.Path == "" })
}

// namesNotebook reports whether a message or a result names a notebook.
func namesNotebook(m chat.Message) bool {
	return slices.ContainsFunc(m.Parts, func(p chat.Part) bool {
		text := ""
		switch p := p.(type) {
		case chat.Text:
			text = string(p)
		case chat.ToolResult:
			text = p.Text
		}
		_, after, found := strings.Cut(text, ".ipynb")
		return found && !strings.HasPrefix(after, "_") // Jupyter's folder of checkpoints
	})
}
