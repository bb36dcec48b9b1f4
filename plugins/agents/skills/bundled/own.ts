/** Skill: inspect the own session. */
export const own = `---
name: svc-session
description: Look at your own session - who you are, what was said and done before, which skills there are. Use it when you have lost the thread, after a restart, or when asked what happened earlier.
version: 1.0.0
---
# Your own session

You run inside a session of \`svc\`. The command \`svc\` is on your PATH and knows which session is yours; it shows you that
one and refuses others. Nothing here changes anything.

Who you are, and what you may still start:

\`\`\`sh
svc whoami
\`\`\`

What happened, the newest last. Begin with the recap; read events only when it is not enough, and few of them:

\`\`\`sh
svc session recap "$SVC_SESSION_ID"
svc session history "$SVC_SESSION_ID" --limit 20
svc session events "$SVC_SESSION_ID" --limit 50 --json
\`\`\`

The skills that you can use, and the instructions of one:

\`\`\`sh
svc skill list
svc skill content svc-schedule
\`\`\`

- Exit status 0 is success, 4 means that there is no such thing, 6 that you may not, 3 that the daemon does not answer.
- \`--json\` gives output to parse; without it output is for people and may change.
- When a command is refused, do not look for another way: say which command you wanted to run, and why.
`
