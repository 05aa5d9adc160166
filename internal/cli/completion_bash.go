package cli

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// bashAlone are stand-ins for the two functions of the package bash-completion that
// cobra's script for bash calls: many machines do not have it, and each Tab would print an
// error into the line. Where the package is there it is asked.
const bashAlone = `
# The words of the line, with those put together again that bash divides at = and :.
__reprise_get_words()
{
    local i piece
    if declare -F _get_comp_words_by_ref >/dev/null 2>&1; then
        _get_comp_words_by_ref "$@" cur prev words cword
        return
    fi
    words=()
    for ((i = 0; i < ${#COMP_WORDS[@]}; i++)); do
        piece=${COMP_WORDS[i]}
        if ((i > 1)) && { [[ $piece == [=:]* ]] || [[ ${COMP_WORDS[i-1]} == *[=:] ]]; }; then
            words[${#words[@]}-1]+=$piece
        else
            words+=("$piece")
        fi
        ((i == COMP_CWORD)) && cword=$((${#words[@]} - 1))
    done
    cur=${words[cword]}
    prev=
    ((cword > 0)) && prev=${words[cword-1]}
    return 0
}

# Files, or with -d directories, that begin like the word.
__reprise_files()
{
    local name kind=-f
    if declare -F _filedir >/dev/null 2>&1; then
        _filedir "$@"
        return
    fi
    [[ ${1-} == -d ]] && kind=-d
    while IFS= read -r name; do
        COMPREPLY+=("$name")
    done < <(compgen "$kind" -- "$cur")
}
`

// standAlone has `reprise completion bash` print a script that needs no other package.
func standAlone(root *cobra.Command) {
	bash, _, err := root.Find([]string{"completion", "bash"})
	if err != nil || bash.Name() != "bash" {
		return // another command was named, and this one is not made
	}
	bash.Long = strings.Replace(bash.Long, `This script depends on the 'bash-completion' package.
If it is not installed already, you can install it via your OS's package manager.
`, `This script uses the 'bash-completion' package where that is loaded, and does without
it otherwise.
`, 1)
	bash.RunE = func(cmd *cobra.Command, _ []string) error {
		bare, err := cmd.Flags().GetBool("no-descriptions")
		if err != nil {
			return err
		}
		script, err := BashScript(cmd.Root(), !bare)
		if err == nil {
			_, err = fmt.Fprint(cmd.OutOrStdout(), script)
		}
		return err
	}
}

// BashScript is what bash reads to complete the commands of root: cobra's script, with the
// calls of the package bash-completion led to [bashAlone].
func BashScript(root *cobra.Command, descriptions bool) (string, error) {
	var made bytes.Buffer
	if err := root.GenBashCompletionV2(&made, descriptions); err != nil {
		return "", err
	}
	script := made.String()
	script = strings.ReplaceAll(script, `_get_comp_words_by_ref "$@" cur prev words cword`, `__reprise_get_words "$@"`)
	script = strings.ReplaceAll(script, "_filedir", "__reprise_files")
	head, rest, _ := strings.Cut(script, "\n\n")
	return head + "\n" + bashAlone + "\n" + rest, nil
}
