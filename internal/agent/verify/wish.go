package verify

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// A runner is how a test command begins when it stands in the middle of a
// sentence. A bare one that is also plain English is not taken for a command.
type runner struct {
	begins string
	prose  bool
}

var runners = []runner{
	{"go test", true}, {"pytest", true}, {"pnpm test", false}, {"npm test", false}, {"yarn test", false},
	{"cargo test", false}, {"mvn -q test", false}, {"mvn test", false}, {"./gradlew test", false}, {"gradle test", false},
}

// tools begin a test command when it stands in quotes, where every word counts.
var tools = []string{
	"go", "pytest", "python", "python3", "tox", "npm", "pnpm", "yarn", "npx", "bun", "deno", "cargo", "mvn", "gradle", "./gradlew",
	"make", "just", "task", "ctest", "bazel", "dotnet", "rake", "bundle", "mix",
}

// named lists the test commands in a person's words, in their order.
func named(text string) []string {
	var found []string
	add := func(command string) {
		if !slices.Contains(found, command) {
			found = append(found, command)
		}
	}
	for i, part := range strings.Split(text, "`") {
		if i%2 == 1 {
			words := strings.Fields(part)
			if len(words) > 0 && slices.Contains(tools, words[0]) &&
				(words[0] == "pytest" || strings.Contains(part, "test") || strings.Contains(part, "check")) {
				add(strings.TrimSpace(part))
			}
			continue
		}
		// Between other words: the runner, and the options and paths that follow it.
		for i := 0; i < len(part); i++ {
			for _, r := range runners {
				if strings.HasPrefix(part[i:], r.begins) && edge(part, i, len(r.begins)) {
					command := r.begins + arguments(part[i+len(r.begins):])
					if command != r.begins || !r.prose {
						add(command)
					}
					i += len(command) - 1
					break
				}
			}
		}
	}
	return found
}

// edge reports whether the n bytes at i stand by themselves.
func edge(text string, i, n int) bool {
	word := func(c byte) bool {
		return c == '_' || c == '-' || c == '/' || c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z'
	}
	return (i == 0 || !word(text[i-1]) && text[i-1] != '.') && (i+n == len(text) || !word(text[i+n]))
}

// arguments is the part of text that still belongs to the command before it.
func arguments(text string) string {
	var b strings.Builder
	for {
		rest := strings.TrimLeft(text, " ")
		if len(rest) == len(text) {
			return b.String()
		}
		word := rest
		if end := strings.IndexFunc(rest, func(r rune) bool { return r <= ' ' || r >= utf8.RuneSelf }); end >= 0 {
			word = rest[:end]
		}
		cut := strings.TrimRight(word, `,;:!?)"'`)
		if strings.HasSuffix(cut, "....") || !strings.HasSuffix(cut, "...") {
			cut = strings.TrimSuffix(cut, ".")
		}
		if cut == "" || !strings.HasPrefix(cut, "-") && !strings.ContainsAny(cut, "/=|&><") {
			return b.String()
		}
		b.WriteString(" " + cut)
		if cut != word {
			return b.String()
		}
		text = rest[len(word):]
	}
}

// wishes are the ways to ask for a check.
var wishes = []string{
	"run the test", "run test", "run all test", "run your test", "run unit test", "run the unit test", "run the suite",
	"run the test suite", "rerun the test", "re-run the test", "execute the test", "tests pass", "test passes", "tests are green",
	"test your change", "test the change", "test it", "please verify", "and verify", "then verify", "verify it", "verify that",
	"verify the", "verify your", "verify by", "verify with", "verify afterwards", "run verification", "run the verification",
	"执行验证", "进行验证", "请验证", "并验证", "再验证", "后验证", "验证一下", "验证通过", "验证修改", "验证改动", "做验证", "跑验证", "自动验证", "需要验证",
	"跑测试", "跑一下测试", "跑一遍测试", "跑下测试", "运行测试", "执行测试", "跑单测", "跑单元测试", "运行单元测试", "测试一下", "测一下", "测试通过", "通过测试",
}

// notAWish are words that only look like a wish.
var notAWish = []string{"验证码"}

// negations, in the same clause before it, turn a wish around.
var (
	negations = []string{"don't", "dont", "do not", "don’t", "not ", "never", "without", "no need", "skip", "不", "别", "勿", "无需", "无须", "跳过", "没有必要"}
	affirming = []string{"forget", "忘", "不仅", "不但", "不只"}
)

// AskedFor reports whether a person asks, in English or Chinese, for the work
// to be checked, or names the command to check it with.
func AskedFor(text string) bool {
	for _, command := range named(text) {
		if !refuses(text, strings.Index(text, command)) {
			return true
		}
	}
	text = strings.ToLower(strings.Join(strings.Fields(text), " "))
	for _, word := range notAWish {
		text = strings.ReplaceAll(text, word, "")
	}
	if strings.HasPrefix(text, "verify") && !strings.HasPrefix(text, "verify_") {
		return true
	}
	for _, wish := range wishes {
		for from := 0; ; {
			i := strings.Index(text[from:], wish)
			if i < 0 {
				break
			}
			if !refuses(text, from+i) {
				return true
			}
			from += i + len(wish)
		}
	}
	return false
}

// clauseLimit is how many bytes before a wish may turn it around.
const clauseLimit = 200

// refuses reports whether what stands at i is said not to be wanted.
func refuses(text string, i int) bool {
	if i < 0 {
		return false
	}
	clause := strings.ToLower(text[max(0, i-clauseLimit):i])
	if j := strings.LastIndexAny(clause, "，。；、,.;!?！？\n"); j >= 0 {
		clause = clause[j:]
	}
	has := func(word string) bool { return strings.Contains(clause, word) }
	return slices.ContainsFunc(negations, has) && !slices.ContainsFunc(affirming, has)
}
