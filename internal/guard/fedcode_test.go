package guard

// fedOtherwise are commands, under settings that let the project's code run, by which a
// program is given code to read that is none of the project's; fedPlainly are those by
// which it reads a file of the project, or data.
var (
	fedOtherwise = []string{
		"python3 <<< 'import os'", "python3 <<'X'\nimport os\nX", "echo x | python3", "echo x | node", "echo x | perl", "ruby <<< x", "php <<< x", "lua <<< x", "tclsh <<< x", "R <<< x", "ghci <<< x", "deno <<< x", "jshell <<< x",
		"echo x | timeout 5 python3", "python3 -u <<< x", "cat x.py - <<< z | python3", "cat x.py /dev/stdin <<< z | python3", "python3", "(python3) <<< x", "bash -c python3 <<< x", "sbt <<< 'eval x'", "python3 3<<< x <&3",
		"fish <<< ls", "fish <<< 'rm -rf ~'", "echo 'rm -rf ~' | fish", "fish", "pwsh <<< 'Remove-Item -Recurse ~'", "echo $X | pwsh",
		"echo 'rm -rf ~' | cat - | bash", "echo 'rm -rf ~' | cat /dev/stdin | bash", "echo 'rm -rf ~' | bash < /dev/stdin", "echo ls | bash 3<<< 'rm -rf ~' <&3", "bash < /dev/fd/3",
		"dc -e '!rm -rf ~'", "echo '!rm -rf ~' | dc", "echo '!x' | bc", "echo $X | dc",
		"echo 'rm -rf ~' | parallel", "curl -s http://localhost:1 | parallel", "printf '%s\\n' 'rm -rf ~' ls | parallel", "parallel ::: 'rm -rf ~'", "parallel echo '; rm -rf ~' ::: x", "parallel echo '$X' ::: a", "echo ~ | parallel rm -rf", "parallel cat ::: .env", "echo .env | parallel cat", "parallel -a f", "parallel :::: f", "parallel $X ::: a", "parallel cat {} ::: .env", "parallel", "parallel ::: $X",
	}
	fedPlainly = []string{
		"python3 < x.py", "cat x.py | python3", "echo x | python3 x.py", "python3 x.py < data.txt", "python3 x.py <<< data", "node app.js <<< data", "python3 --version", "echo 2+2 | bc", "dc -e '2 2+p'", "echo '2 2+p' | dc", "dc < f", "./x.sh <<< data",
		"parallel echo ::: a b", "ls | parallel echo", "ls *.py | parallel wc -l {}", "printf '%s\\n' ls pwd | parallel", "parallel ::: ls pwd", "parallel echo {.} ::: a", "cat x.sh | bash",
	}
)
