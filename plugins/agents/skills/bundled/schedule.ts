/** Skill: propose scheduled work. */
export const schedule = `---
name: svc-schedule
description: Propose work that runs on a schedule - a job that the daemon runs every hour, every weekday or once at a given time. Use it when somebody asks for something to happen regularly or later.
version: 1.0.0
---
# Work on a schedule

A job of \`svc\` starts a session by itself and sends it a prompt. Only a person may create one: you write the command, and
they run it. You cannot run it, for a job makes code run.

1. Settle four things: what is to be done, when, by which agent, and in which workspace.
2. Write a prompt that stands alone. The session of a job knows nothing of this conversation: name the files, what counts as
   done, and what to do when something fails.
3. Give the person one command to run, and say what it will do.

Every weekday at nine, in the time zone of the machine:

\`\`\`sh
svc job create review --cron '0 9 * * 1-5' --prompt 'Read the open changes in this repository and list what needs a review, the oldest first.'
\`\`\`

Every six hours, at most three runs a day:

\`\`\`sh
svc job create links --every 6h --fire-limit '{"max":3,"window":"1d"}' --prompt 'Check the links in docs/ and report those that are dead. Change no file.'
\`\`\`

Once:

\`\`\`sh
svc job create release --at 2030-01-31T09:00 --prompt 'Write release notes from the commits since the last tag into NOTES.md.'
\`\`\`

Then tell them how to see it, try it at once and switch it off:

\`\`\`sh
svc job list
svc job trigger review
svc job disable review
\`\`\`

- Sessions of jobs run in a sandbox and nobody answers their questions: a job whose work needs approval fails.
- Prefer the longest interval that serves. Each run costs what a conversation costs.
`
