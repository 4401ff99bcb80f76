package tool

import "slices"

// Class is the purpose of a tool. Decisions about tools depend on
// the class or on the plan of a call, never on the name.
type Class uint8

// The classes. A tool that no decision depends on has the zero class, as do the tools of other programs.
const (
	ClassNone       Class = iota
	ClassReadFile         // by its path
	ClassListFolder       // by its path
	ClassFindFiles        // by name
	ClassSearchText       // in files
	ClassSearchCode
	ClassNavigateCode
	ClassEditFile   // one file
	ClassPatchFiles // several files
	EditsNotebook
	ClassShell // the command line under "command"
	ClassJobs  // background jobs of the shell
	ClassReadGit
	ClassChangeGit
	ClassFetch
	ClassReadTodos
	ClassWriteTodos
	ClassAskUser
	ClassEndPlan
	ClassLoadSkill
	ClassDelegate    // to another agent
	ClassFindTools   // tools that are not advertised yet
	ClassFinalAnswer // in the requested form
	ClassMemory      // the user's memory
)

type builtin struct {
	name        string
	class       Class
	group       string
	description string
}

// builtins are coder's own tools: their names in calls, rules and records, and short descriptions for users.
// Tools of a group are advertised under the group's name.
var builtins = []builtin{
	{"read", ClassReadFile, "", "read a file"},
	{"list", ClassListFolder, "", "list a folder"},
	{"glob", ClassFindFiles, "", "find files by name"},
	{"grep", ClassSearchText, "", "search the lines of files with a regular expression"},
	{"search_code", ClassSearchCode, "", "find code by meaning"},
	{"bash", ClassShell, "", "run a command in the sandbox, with approval by rule and risk"},
	{"jobs", ClassNone, "", "manage background commands"},
	{"jobs_list", ClassJobs, "jobs", ""},
	{"job_read", ClassJobs, "jobs", ""},
	{"job_stop", ClassJobs, "jobs", ""},
	{"git_status", ClassReadGit, "", "show the branch and what changed since the last commit"},
	{"git_diff", ClassReadGit, "", "show changes as a diff"},
	{"git_log", ClassReadGit, "", "list commits, the newest first"},
	{"git_add", ClassChangeGit, "", "stage files for the next commit"},
	{"git_commit", ClassChangeGit, "", "commit what is staged"},
	{"fetch", ClassFetch, "", "fetch a page or a file from the web"},
	{"lsp", ClassNavigateCode, "", "ask a language server about code"},
	{"lsp_definition", ClassNone, "lsp", ""},
	{"lsp_references", ClassNone, "lsp", ""},
	{"lsp_hover", ClassNone, "lsp", ""},
	{"lsp_diagnostics", ClassNone, "lsp", ""},
	{"todoread", ClassReadTodos, "", "read the todo list"},
	{"todowrite", ClassWriteTodos, "", "write the todo list"},
	{"skill", ClassLoadSkill, "", "load instructions for one kind of work"},
	{"memory", ClassMemory, "", "read your memory, or propose an entry"},
	{"write", ClassEditFile, "", "create or replace a file"},
	{"edit", ClassEditFile, "", "replace text in a file"},
	{"notebook_edit", EditsNotebook, "", "change a cell of a Jupyter notebook"},
	{"patch", ClassPatchFiles, "", "change several places or files at once, all or nothing"},
	{"task", ClassDelegate, "", "delegate work to another agent"},
	{"question", ClassAskUser, "", "ask you what only you can decide"},
	{"exit_plan_mode", ClassEndPlan, "", "submit the finished plan to you"},
	{"tool_search", ClassFindTools, "", "find more tools of MCP servers"},
	{"structured_output", ClassFinalAnswer, "", ""},
}

func findBuiltin(name string) builtin {
	i := slices.IndexFunc(builtins, func(t builtin) bool { return t.name == name })
	if i < 0 {
		return builtin{}
	}
	return builtins[i]
}

// ClassOf returns the class of coder's own tool with the name in a call or record.
func ClassOf(name string) Class { return findBuiltin(name).class }

// Describe returns a short description of coder's own tool for users, or "" for any other name.
func Describe(name string) string { return findBuiltin(name).description }

// BuiltinNames returns the names of coder's own tools of some classes, or of all classes.
func BuiltinNames(classes ...Class) (names []string) {
	for _, t := range builtins {
		if len(classes) == 0 || slices.Contains(classes, t.class) {
			names = append(names, t.name)
		}
	}
	return names
}

// NamesInGroup returns the names of coder's own tools that are advertised under a group's name.
func NamesInGroup(group string) (names []string) {
	for _, t := range builtins {
		if group != "" && t.group == group {
			names = append(names, t.name)
		}
	}
	return names
}

// FirstOfClass returns the name of the first tool of a class, and whether it exists and is on.
func (s Set) FirstOfClass(c Class) (name string, on bool) {
	for _, spec := range s.specs {
		if spec.Class == c {
			return spec.Name, !s.IsOff(spec.Name)
		}
	}
	return "", false
}
