/** Skill: how to write a skill. */
export const write = `---
name: svc-write-skill
description: Write a skill - instructions that later sessions find by themselves. Use it when somebody asks you to remember how something is done here, or when you explain the same procedure a second time.
version: 1.0.0
---
# Write a skill

A skill is a folder with a file \`SKILL.md\`. Skills of this workspace lie in \`.svc/skills/\` of its root; those of one agent
in \`skills/\` beside its AGENT.md. Sessions are told the name and the description of each; the instructions are read when
they are needed.

\`\`\`markdown
---
name: release-notes
description: Write release notes from the commits since the last tag. Use it before a release.
version: 1.0.0
metadata:
  svc:
    when:
      platforms: [linux, darwin]
---
1. List the commits: \\\`git log --oneline "$(git describe --tags --abbrev=0)"..\\\`
2. Group them by what a user notices. Leave out what no user does.
3. Write them into NOTES.md, the newest release first.
\`\`\`

- The name is its identity: of two with one name the nearer one is used - agent, workspace, home, what comes with svc.
- The description decides whether it is found. Say what it does and when to use it, in one or two sentences.
- Write steps that can be carried out and checked. Put long material into files beside SKILL.md and name them.
- No secrets, and no characters that are not shown: a skill with hidden text is refused.

A new skill of a workspace counts after a person trusts its files again. Tell them:

\`\`\`sh
svc workspace trust .
\`\`\`

Then look at it, and at what it hides:

\`\`\`sh
svc skill show release-notes
svc skill shadows release-notes
\`\`\`
`
