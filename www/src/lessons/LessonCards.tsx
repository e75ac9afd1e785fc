// The lessons to choose from, and tables of one's own, where a table is opened.

import type { JSX } from "preact";
import { LESSONS } from "./lessons.js";

export function LessonCards({ onLesson }: { onLesson: (id: string) => void }): JSX.Element {
  return (
    <>
      <h3>Lessons</h3>
      <ul class="samples">
        {LESSONS.map((lesson) => (
          <li key={lesson.id}>
            <button type="button" class="lesson-card" data-lesson={lesson.id} onClick={() => onLesson(lesson.id)}>
              <b>{lesson.title}</b>
              <span>{lesson.goal}</span>
            </button>
          </li>
        ))}
      </ul>
    </>
  );
}
