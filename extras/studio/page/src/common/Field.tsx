// A value that a person writes.

import { useState } from "react";

interface FieldProps {
  label: string;
  value: string;
  placeholder?: string;
  onSet: (value: string) => void;
  disabled?: boolean;
  clears?: boolean; // it may be left empty
}

/** A value that takes effect with Enter, or when the field is left. */
export function Field({ label, value, placeholder, onSet, disabled, clears }: FieldProps) {
  const [typed, setTyped] = useState<string | null>(null);
  const end = () => {
    if (typed !== null && typed !== value && (typed !== "" || clears)) onSet(typed);
    setTyped(null);
  };
  return (
    <label>
      {label}
      <input
        value={typed ?? value}
        placeholder={placeholder}
        disabled={disabled}
        onChange={(event) => setTyped(event.target.value)}
        onBlur={end}
        onKeyDown={(event) => event.key === "Enter" && end()}
        data-testid={`field-${label}`}
      />
    </label>
  );
}
