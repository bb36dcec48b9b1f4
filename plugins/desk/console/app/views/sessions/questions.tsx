import { useEffect, useState } from 'preact/hooks'
import { announce } from '../../core/announce.js'
import { api, type ReplyOf } from '../../core/api.js'
import { useResource } from '../../core/resource.js'
import { text } from '../../text.js'
import { Patch } from '../../ui/diff.js'
import { Action, Code, Problem } from '../../ui/parts.js'
import type { Place } from './use-transcript.js'

type Question = ReplyOf<'GET /api/workspaces/{workspace_id}/sessions/{session_id}/interactions'>['interactions'][number]

const words = text.sessions

/** Open questions of the agent. @param told the questions in the transcript; a change reloads the open ones */
export function Questions({ at, told }: { readonly at: Place; readonly told: string }) {
  const { data, error, reload } = useResource(
    signal =>
      api(
        'GET /api/workspaces/{workspace_id}/sessions/{session_id}/interactions',
        { path: at, query: { status: 'pending' } },
        signal,
      ),
    [at.session_id],
    /^(?:session|permission|interaction|clarification)/,
  )
  // The transcript shows a question earlier than the event.
  useEffect(reload, [told])
  const questions = data?.interactions ?? []
  const first = questions[0]?.interaction_id
  useEffect(() => {
    if (first) announce(`${words.question}: ${questions[0]?.title ?? ''}`)
  }, [first])
  return (
    <>
      <Problem error={error} retry={reload} />
      {questions.map(question => (
        <section key={question.interaction_id} class="question" aria-label={words.question}>
          <p class="label">{words.question}</p>
          <p class="asked-title">{question.title}</p>
          {question.command && <Code label={text.manage.fields.command}>{question.command}</Code>}
          {question.outside && question.outside.length > 0 && (
            <p class="failure">
              {words.outside}: {question.outside.join(', ')}
            </p>
          )}
          {question.diffs?.map(({ path, patch }) => (
            <Patch key={path} path={path} patch={patch} />
          ))}
          {question.kind === 'permission' ? (
            <Decisions at={at} question={question} done={reload} />
          ) : (
            <Answer at={at} question={question} done={reload} />
          )}
        </section>
      ))}
    </>
  )
}

interface Asked {
  readonly at: Place
  readonly question: Question
  readonly done: () => void
}

const DECISIONS = ['allow-once', 'allow-always', 'reject-once', 'reject-always'] as const

function Decisions({ at, question, done }: Asked) {
  const offered = DECISIONS.filter(decision => question.decisions?.includes(decision) ?? true)
  const decide = async (decision: (typeof DECISIONS)[number]) => {
    const body = { request_id: question.provider_request_id, turn_id: question.turn_id ?? '', decision }
    await api('POST /api/workspaces/{workspace_id}/sessions/{session_id}/approve', { path: at, body })
    announce(words.answered)
    done()
  }
  return (
    <div class="actions">
      {offered.map(decision => (
        <Action
          key={decision}
          label={words.answers[decision] ?? decision}
          tone={decision === 'allow-once' ? 'primary' : ''}
          run={() => decide(decision)}
        />
      ))}
    </div>
  )
}

function Answer({ at, question, done }: Asked) {
  const [said, say] = useState('')
  const answer = async (body: { text?: string; choice_index?: number; skip?: boolean }) => {
    const path = { ...at, request_id: question.provider_request_id }
    await api('POST /api/workspaces/{workspace_id}/sessions/{session_id}/clarifications/{request_id}/answer', {
      path,
      body,
    })
    announce(words.answered)
    done()
  }
  return (
    <>
      <div class="actions">
        {question.choices?.map((choice, n) => (
          <Action key={choice} label={choice} run={() => answer({ choice_index: n })} />
        ))}
      </div>
      <label>
        {words.answer}
        <input type="text" value={said} onInput={event => say(event.currentTarget.value)} />
      </label>
      <div class="actions">
        <Action label={words.send} tone="primary" run={() => answer({ text: said })} />
        <Action label={words.skip} run={() => answer({ skip: true })} />
      </div>
    </>
  )
}
