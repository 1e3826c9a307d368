"""From a request to an image: a plan that is complete, the steps that it means, the record that the image keeps."""
