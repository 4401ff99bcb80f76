// Package dialect converts calls that models learned to write for other agents' tools into coder's calls. One
// table, calls.txt, has all it knows: names of tools and arguments, which of them to ignore, and what to do
// if no tool of coder does the same. It is asked only about calls that are not understood as they are, and
// never guesses: an ambiguous call is rejected with a hint about the right one.
package dialect

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"

	"coder/internal/core/lazy"
	"coder/internal/core/message"
)

//go:embed calls.txt
var tableSource string

// Call is a call of one of coder's tools.
type Call struct {
	Tool string
	Args json.RawMessage
	Note string // the conversions made, for the model
}

// UnsupportedError is the error of a known call without an equivalent in coder.
type UnsupportedError struct{ Tool, Instead string }

func (r *UnsupportedError) Error() string { return fmt.Sprintf("%s: %s", r.Tool, r.Instead) }

// Convert converts a call. It returns false if the table does not have the call, or not with these arguments.
func Convert(tool string, args json.RawMessage) (Call, bool, error) {
	given := make(map[string]json.RawMessage)
	if len(args) > 0 && json.Unmarshal(args, &given) != nil {
		return Call{}, false, nil
	}
	var refused error
	all := loadTable().rows[fold(tool)]
	for _, also := range []bool{false, true} { // the row itself, then other rows of the same tool
		for _, r := range all {
			if also {
				r.commonArgs = loadTable().commonArgs[r.target]
			}
			if r.target == "" || !r.applies(given) {
				continue
			}
			c, err := r.convert(tool, given)
			if err == nil {
				return c, true, nil
			}
			if refused == nil {
				refused = &UnsupportedError{tool, err.Error()}
			}
		}
	}
	if refused != nil {
		return Call{}, true, refused
	}
	// No row converts it; one may say what to do instead.
	var when string
	var may []string
	for _, r := range all {
		if r.target == "" && r.applies(given) {
			return Call{}, true, &UnsupportedError{tool, r.instead}
		}
		if r.whenArg != "" && !slices.Contains(may, r.whenValue) {
			when, may = r.whenArg, append(may, r.whenValue)
		}
	}
	if when == "" || slices.Contains(may, stringValue(given[when])) {
		return Call{}, false, nil
	}
	return Call{}, true, &UnsupportedError{tool, fmt.Sprintf("argument %q must be one of %s", when,
		strings.Join(may, ", "))}
}

// BareName returns the name of a tool without the additions of some models, such as functions.read,
// default_api:read or ReadTool; "" if nothing was added.
func BareName(tool string) string {
	bare := tool
	for _, around := range []string{"functions", "default_api", "tools", "tool", "developer"} {
		for _, sep := range []string{".", ":", "__", "/"} {
			bare = strings.TrimPrefix(bare, around+sep)
		}
	}
	if n := len(bare) - len("tool"); n > 0 && strings.EqualFold(bare[n:], "tool") {
		bare = strings.TrimRight(bare[:n], "_-")
	}
	if bare == tool {
		return ""
	}
	return bare
}

// IsKnown reports whether the table has a tool with this name.
func IsKnown(tool string) bool { return len(loadTable().rows[fold(tool)]) > 0 }

// Equivalents returns coder's tools that a foreign tool corresponds to.
func Equivalents(tool string) (names []string) {
	for _, r := range loadTable().rows[fold(tool)] {
		if r.target != "" {
			names = append(names, r.target)
		}
	}
	return names
}

// row is one line of the table.
type row struct {
	target, instead    string
	whenArg, whenValue string // the argument required to have a value, and the value
	args, commonArgs   map[string]arg
}

// findArg returns the conversion of an argument, if it is known.
func (r row) findArg(theirs string) (a arg, known bool) {
	if a, known = r.args[fold(theirs)]; !known {
		a, known = r.commonArgs[fold(theirs)]
	}
	return a, known
}

// conversionTable is the content of the table.
type conversionTable struct {
	rows       map[string][]row          // by the folded name of the foreign tool
	commonArgs map[string]map[string]arg // by coder's tool, arguments with the same meaning everywhere
}

func (k conversionTable) addRow(name string, r row) {
	k.rows[name] = append(k.rows[name], r)
	all := k.commonArgs[r.target]
	if all == nil {
		all = make(map[string]arg)
		k.commonArgs[r.target] = all
	}
	for theirs, a := range r.args {
		if !slices.Contains(sharedConversions, a.conversion) {
			continue
		}
		a.required = false
		if before, there := all[theirs]; there && before != a {
			a = arg{ambiguous: true}
		}
		all[theirs] = a
	}
}

// sharedConversions are the conversions with the same meaning in any call; the others are specific to a call.
var sharedConversions = []string{"", "cd", "except", "globs", "literal", "literally", "mode", "most", "multiline",
	"names", "none", "not", "regexp", "seconds"}

// arg is the conversion of an argument.
type arg struct {
	name, conversion string
	ignored          bool
	required         bool
	ambiguous        bool // its meaning differs between calls
}

var loadTable = sync.OnceValue(func() conversionTable {
	all := conversionTable{make(map[string][]row), make(map[string]map[string]arg)}
	for line := range strings.Lines(tableSource) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		cell := strings.SplitN(line, "|", 4)
		for i := range cell {
			cell[i] = strings.TrimSpace(cell[i])
		}
		name, condition, _ := strings.Cut(strings.TrimSuffix(cell[1], "]"), "[")
		r := row{target: cell[2], args: make(map[string]arg)}
		r.whenArg, r.whenValue, _ = strings.Cut(condition, "=")
		if r.target == "-" {
			r.target, r.instead = "", cell[3]
		} else {
			for word := range strings.FieldsSeq(cell[3]) {
				if name, ok := strings.CutSuffix(word, "!"); ok {
					r.args[fold(name)] = arg{ignored: true}
					continue
				}
				var a arg
				word, a.required = strings.CutSuffix(word, "*")
				theirs, ours, renamed := strings.Cut(word, "=")
				if !renamed {
					ours = theirs
				}
				a.name, a.conversion, _ = strings.Cut(ours, "/")
				r.args[fold(theirs)] = a
			}
		}
		all.addRow(fold(name), r)
	}
	for _, args := range all.commonArgs { // drop arguments with different meanings
		maps.DeleteFunc(args, func(_ string, a arg) bool { return a.ambiguous })
	}
	return all
})

// fold makes file_path, filePath and FilePath one name.
func fold(s string) string { return strings.ToLower(strings.ReplaceAll(s, "_", "")) }

// applies reports whether the row is for a call with these arguments.
func (r row) applies(given map[string]json.RawMessage) bool {
	if r.whenArg != "" {
		if is := given[r.whenArg]; stringValue(is) != r.whenValue && string(is) != r.whenValue {
			return false
		}
	}
	if r.target == "" {
		return true
	}
	there := make(map[string]bool)
	for name, v := range given {
		there[fold(name)] = true
		if _, known := r.findArg(name); !known && name != r.whenArg && string(v) != "null" {
			return false
		}
	}
	for name, a := range r.args {
		if a.required && !there[name] {
			return false
		}
	}
	return true
}

// convert converts foreign arguments into a call.
func (r row) convert(tool string, given map[string]json.RawMessage) (Call, error) {
	w := callBuilder{args: make(map[string]any), foreignArgs: given}
	var renamed, ignored []string
	for _, name := range slices.Sorted(maps.Keys(given)) {
		value := given[name]
		a, _ := r.findArg(name)
		switch {
		case name == r.whenArg || string(value) == "null":
			continue
		case a.ignored:
			ignored = append(ignored, name)
			continue
		}
		if err := w.convertArg(a, value); err != nil {
			return Call{}, message.Errorf("%s: %w", name, err)
		}
		if a.name != "" && fold(a.name) != fold(name) && a.conversion == "" {
			renamed = append(renamed, name+" as "+a.name)
		}
	}
	if w.dir != "" && w.dir != "." {
		command := w.stringArg("command")
		if strings.ContainsAny(command, "\n;&|<>#(){}`") { // do not run at all if cd fails
			command = "{\n" + command + "\n}"
		}
		w.args["command"] = "cd " + shellQuote(w.dir) + " && " + command
		w.notes = append(w.notes, "there is no argument for the folder; the command begins with cd")
	}
	if w.lastLine > 0 {
		first := 1
		switch from := w.args["offset"].(type) {
		case int:
			first = max(from, 1)
		case json.RawMessage:
			_ = json.Unmarshal(from, &first) // the tool rejects anything but a number
			first = max(first, 1)
		}
		w.args["limit"] = max(w.lastLine-first+1, 1)
	}
	if w.excludeGlobs != "" {
		w.args["include"] = strings.TrimPrefix(w.stringArg("include")+","+w.excludeGlobs, ",")
	}
	if w.literal {
		w.args["pattern"] = regexp.QuoteMeta(w.stringArg("pattern"))
	}
	args, err := json.Marshal(w.args)
	if err != nil {
		return Call{}, err
	}
	if fold(tool) != fold(r.target) {
		renamed = slices.Insert(renamed, 0, tool+" as "+r.target)
	}
	var notes []string
	if len(renamed) > 0 {
		notes = append(notes, "taken: "+strings.Join(renamed, ", "))
	}
	if len(ignored) > 0 {
		notes = append(notes, "ignored: "+strings.Join(ignored, ", "))
	}
	return Call{Tool: r.target, Args: args, Note: strings.Join(append(notes, w.notes...), "; ")}, nil
}

var patchCommandPattern = lazy.Regexp(`^\s*(?:apply_patch|applypatch)\b`)

// ConvertCommand converts a command line that invokes what is a tool here: a patch for apply_patch. Combined
// with other commands, or in another folder, it is rejected.
func ConvertCommand(args json.RawMessage) (Call, bool, error) {
	var given map[string]json.RawMessage
	if json.Unmarshal(args, &given) != nil {
		return Call{}, false, nil
	}
	line, elsewhere := "", false
	for name, v := range given {
		switch fold(name) {
		case "command", "cmd":
			line = commandLine(v)
		case "workdir", "cwd", "workingdir", "workingdirectory", "directory", "dirpath":
			elsewhere = elsewhere || !slices.Contains([]string{"", "."}, stringValue(v))
		}
	}
	begin, end := strings.Index(line, "*** Begin Patch"), strings.LastIndex(line, "*** End Patch")
	if begin < 0 || !strings.Contains(line[:begin], "apply_patch") && !strings.Contains(line[:begin], "applypatch") {
		return Call{}, false, nil
	}
	if !patchCommandPattern().MatchString(line) || elsewhere || end < begin || len(strings.Fields(line[end+len("*** End Patch"):])) > 1 {
		return Call{}, true, &UnsupportedError{"apply_patch", "not a command here; call the tool patch with only the text from *** Begin Patch to *** End Patch, and paths relative to the workspace"}
	}
	text, err := json.Marshal(map[string]string{"patch": line[begin:end] + "*** End Patch"})
	return Call{Tool: "patch", Args: text, Note: "taken: apply_patch as the tool patch"}, true, err
}

// commandLine returns a command line that may be a list of words. Quotes do not matter for what is searched in it.
func commandLine(raw json.RawMessage) string {
	var words []string
	if json.Unmarshal(raw, &words) != nil {
		return stringValue(raw)
	}
	if len(words) == 3 && isShell(words[0]) {
		return words[2]
	}
	return strings.Join(words, " ")
}
