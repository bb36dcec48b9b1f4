import { api, type ReplyOf } from '../../core/api.js'
import { text } from '../../text.js'
import type { ListView } from '../../ui/list.js'
import { Action, Fields } from '../../ui/parts.js'

type Skill = ReplyOf<'GET /api/skills'>['skills'][number]

const { fields } = text.manage
const { yes, no, enable, disable } = text.automation

export const skills: ListView<Skill> = {
  name: 'skills',
  title: text.manage.skills,
  command: 'svc skill list',
  load: async signal => (await api('GET /api/skills', {}, signal)).skills,
  changes: /^skill\./,
  id: ({ name }) => name,
  columns: [
    { header: fields.name, cell: ({ name }) => name, wide: true },
    { header: fields.source, cell: ({ source }) => source },
    { header: fields.enabled, cell: ({ enabled }) => (enabled ? yes : no) },
    { header: fields.active, cell: ({ activation }) => (activation.active ? yes : no) },
  ],
  empty: text.manage.none.skills,
  detail: {
    title: ({ name }) => name,
    command: ({ name }) => `svc skill show ${name}`,
    show: (skill, reload) => (
      <>
        <div class="actions">
          <Action
            label={skill.enabled ? disable : enable}
            run={async () => {
              const at = { path: { name: skill.name } }
              await (skill.enabled
                ? api('POST /api/skills/{name}/disable', at)
                : api('POST /api/skills/{name}/enable', at))
              reload()
            }}
          />
        </div>
        <p>{skill.description}</p>
        <Fields
          of={[
            [fields.source, skill.source],
            [fields.version, skill.version],
            [fields.folder, skill.dir],
          ]}
        />
      </>
    ),
  },
}
